"""The plug-ins for vLLM and SGLang without either: off by default, and one sentence where an
interface is missing. The engines themselves are driven by `make engines`."""

from __future__ import annotations

import logging
import operator
import sys
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType, SimpleNamespace
from typing import Any

import dumped
import pytest
import told
import torch
from pass_graphs import faster, slower, workspace
from torch._subclasses.fake_tensor import FakeTensorMode

import tftune
from tftune.engines import sglang, vllm
from tftune.engines.engine_pass import engine_pass, tell_sizes, within
from tftune.graph_pass.decide import Judge
from tftune.graph_pass.inductor import CompilePass
from tftune.kernels.comm.workspace import Workspace

__all__ = ["faster", "slower", "workspace"]
PLUGINS = {"vllm": vllm, "sglang": sglang}
Modules = dict[str, ModuleType]
GROUPS = {"vllm": "vllm.general_plugins", "sglang": "sglang.srt.plugins"}
MODULES = {
    "vllm": (
        "vllm", "vllm.compilation", "vllm.compilation.passes",
        "vllm.compilation.passes.inductor_pass", "vllm.compilation.passes.pass_manager",
        "vllm.config", "vllm.distributed", "vllm.distributed.parallel_state",
    ),
    "sglang": (
        "sglang", "sglang.srt", "sglang.srt.compilation", "sglang.srt.compilation.inductor_pass",
        "sglang.srt.compilation.pass_manager", "sglang.srt.plugins",
        "sglang.srt.plugins.hook_registry",
    ),
}  # fmt: skip


class Anything:
    """A class of an engine's interface."""

    def configure(self, config: Any) -> None:
        """As vLLM's manager."""

    def compute_hash(self) -> str:
        return "0123456789"

    def _set_compile_ranges(self) -> None:
        """As vLLM's configuration."""

    def add(self, one: Any) -> None:
        """As both managers."""

    def is_applicable_for_range(self, one: Any) -> bool:
        return True

    is_applicable_for_shape = is_applicable_for_range


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Modules:
    """Modules of both engines with the names that the plug-ins need."""
    made = {name: ModuleType(name) for names in MODULES.values() for name in names}
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(made[parent], last, module)
    given = {
        "vllm.compilation.passes.inductor_pass": ("InductorPass", "get_pass_context"),
        "vllm.compilation.passes.pass_manager": ("PostGradPassManager",),
        "vllm.config": ("VllmConfig",),
        "sglang.srt.compilation.inductor_pass": ("InductorPass", "get_pass_context"),
        "sglang.srt.compilation.pass_manager": ("PostGradPassManager",),
        "sglang.srt.plugins.hook_registry": ("HookRegistry", "HookType"),
    }
    for module_name, names in given.items():
        for name in names:
            setattr(made[module_name], name, type(name, (Anything,), dict(vars(Anything))))
    state: Any = made["vllm.distributed.parallel_state"]
    state.initialize_model_parallel = state.get_tp_group = lambda: None
    hooks: Any = made["sglang.srt.plugins.hook_registry"]
    hooks.HookType.AFTER, hooks.HookRegistry.targets = "after", []
    hooks.HookRegistry.register = lambda target, hook, kind: hooks.HookRegistry.targets.append(
        (target, kind)
    )
    return made


def hooked(fakes: Modules) -> int:
    """How many functions of the engines are hooked."""
    registry = vars(fakes["sglang.srt.plugins.hook_registry"])["HookRegistry"]
    wrapped = sum(
        hasattr(function, "__wrapped__")
        for module in fakes.values()
        for owner in (module, *(one for one in vars(module).values() if isinstance(one, type)))
        for function in vars(owner).values()
    )
    return wrapped + len(registry.targets)


@pytest.mark.parametrize(("name", "count"), [("vllm", 4), ("sglang", 1)])
@pytest.mark.parametrize("value", [None, "", "0", "1"])
def test_a_plug_in_is_off_by_default_and_hooks_what_it_names(
    name: str, count: int, value: str | None, fakes: Modules, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PLUGINS[name].VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(PLUGINS[name].VARIABLE, value)
    PLUGINS[name].register()
    assert hooked(fakes) == (count if value == "1" else 0)


def test_an_engine_without_the_plug_in_is_as_it_was_beside_one_with_it(
    fakes: Modules, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, found = vars(fakes["vllm.config"])["VllmConfig"](), list[object]()
    state: Any = fakes["vllm.distributed.parallel_state"]
    state.get_tp_group = lambda: found.append("group") or SimpleNamespace(world_size=1)
    monkeypatch.setattr(vllm, "split", found.append)
    for value in ("1", "0"):
        monkeypatch.setenv(vllm.VARIABLE, value)
        vllm.register()
        config._set_compile_ranges()
        state.initialize_model_parallel()
    assert found == [config, "group"]


@pytest.mark.parametrize(
    ("name", "module", "attribute"),
    [
        ("vllm", "vllm.compilation.passes.pass_manager", "PostGradPassManager"),
        ("vllm", "vllm.distributed.parallel_state", "initialize_model_parallel"),
        ("sglang", "sglang.srt.plugins.hook_registry", "HookType"),
        ("sglang", "sglang.srt.compilation.pass_manager", "PostGradPassManager"),
    ],
)
def test_an_engine_without_an_interface_gets_one_sentence(
    name: str, module: str, attribute: str, fakes: Modules,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.setenv(PLUGINS[name].VARIABLE, "1")
    delattr(fakes[module], attribute)
    with caplog.at_level(logging.WARNING, "tftune"):
        PLUGINS[name].register()
        PLUGINS[name].register()
    (record,) = caplog.records
    assert "runs unchanged" in record.message and attribute in record.message
    assert hooked(fakes) == 0


def test_entry_points_name_what_exists() -> None:
    for name, group in GROUPS.items():
        found = [one for one in entry_points(group=group) if one.value.startswith("tftune.")]
        module, _, function = f"tftune.engines.{name}:register".partition(":")
        assert callable(getattr(import_module(module), function))
        assert all(one.value == f"{module}:{function}" for one in found)


def test_importing_the_plug_ins_loads_no_engine() -> None:
    assert not {"vllm", "sglang"} & set(sys.modules)


# The matching of engines' operators, which are defined here as the engines define them.
def _same(x: torch.Tensor, *rest: Any) -> torch.Tensor:
    return x.new_empty(x.shape)


def _resized(x: torch.Tensor, dim: int, world_size: int, group_name: str) -> torch.Tensor:
    return x.new_empty([size * (world_size if i == dim else 1) for i, size in enumerate(x.shape)])


DEFINED: dict[str, dict[str, Any]] = {
    "vllm": {
        "all_reduce(Tensor tensor, str group_name) -> Tensor": _same,
        "all_gather(Tensor tensor, int dim, int world_size, str group_name) -> Tensor": _resized,
    },
    "vllm_ir": {
        "fused_add_rms_norm(Tensor x, Tensor x_residual, Tensor? weight, float epsilon, "
        "SymInt? variance_size=None) -> (Tensor, Tensor)": lambda *given: (_same(*given),) * 2,
        "rms_norm(Tensor x, Tensor? weight, float epsilon, SymInt? variance_size=None) -> "
        "Tensor": _same,
    },
    "sglang": {"inplace_all_reduce(Tensor(a!) tensor, str group_name) -> ()": lambda *given: None},
}
LIBRARIES = {name: torch.library.Library(name, "FRAGMENT") for name in DEFINED}
for engine, schemas in DEFINED.items():
    for schema, function in schemas.items():
        LIBRARIES[engine].define(schema)
        operator_name = schema.partition("(")[0]
        LIBRARIES[engine].impl(operator_name, function, "CompositeExplicitAutograd")
        torch.library.register_fake(f"{engine}::{operator_name}", function, lib=LIBRARIES[engine])
OPS, HIGHER = torch.ops, torch.ops.higher_order.auto_functionalized


def built(steps: Any, weight: torch.dtype = torch.float16) -> torch.fx.GraphModule:
    """A graph of three inputs, x and residual [8, 64] and weight [64], with fake values; `steps`
    adds nodes and returns its results."""
    made = torch.fx.Graph()
    inputs = [made.placeholder(name) for name in ("x", "residual", "weight")]
    made.output(tuple(steps(made, *inputs)))
    with FakeTensorMode():
        values = {name: torch.empty(8, 64, dtype=torch.float16) for name in ("x", "residual")}
        values["weight"] = torch.empty(64, dtype=weight)
    return dumped.with_values(torch.fx.GraphModule(torch.nn.Module(), made), values)


def run_pass(module: torch.fx.GraphModule, workspace: Workspace, name: str = "tp:0") -> CompilePass:
    """The pass of the group that the engine calls by this name."""
    pass_ = CompilePass("0", workspace)
    pass_.names = (name,)
    pass_(module.graph, True)
    module.graph.lint()
    return pass_


def summed(made: torch.fx.Graph, x: Any, residual: Any, weight: Any) -> list[Any]:
    return [made.call_function(OPS.vllm.all_reduce.default, (x, "tp:0"))]


def normed(made: torch.fx.Graph, x: Any, residual: Any, weight: Any, *rest: Any) -> list[Any]:
    (total,) = summed(made, x, residual, weight)
    given = (total, residual, weight, 1e-5, *rest)
    both = made.call_function(OPS.vllm_ir.fused_add_rms_norm.default, given)
    return [made.call_function(operator.getitem, (both, index)) for index in (0, 1)]


def added(made: torch.fx.Graph, x: Any, residual: Any, weight: Any) -> list[Any]:
    """A residual that torch adds, and a norm of vLLM's behind."""
    (total,) = summed(made, x, residual, weight)
    both = made.call_function(OPS.aten.add.Tensor, (total, residual))
    return [made.call_function(OPS.vllm_ir.rms_norm.default, (both, weight, 1e-5)), both]


def in_place(made: torch.fx.Graph, x: Any, residual: Any, weight: Any) -> list[Any]:
    target = OPS.sglang.inplace_all_reduce.default
    held = made.call_function(HIGHER, (target,), {"tensor": x, "group_name": "tp:0"})
    return [made.call_function(operator.getitem, (held, 1))]


def along_columns(made: torch.fx.Graph, x: Any, residual: Any, weight: Any) -> list[Any]:
    return [made.call_function(OPS.vllm.all_gather.default, (x, 1, 2, "tp:0"))]


@pytest.mark.parametrize("steps", [summed, normed, added, in_place])
def test_engines_all_reduces_are_replaced(steps: Any, workspace: Workspace, faster: None) -> None:
    module = built(steps)
    pass_ = run_pass(module, workspace)
    names = [str(node.target) for node in module.graph.nodes]
    assert names.count("tftune.all_reduce.default") == 1, pass_.table()
    assert not any(name.startswith(("vllm", "sglang", "_c10d", "auto")) for name in names)
    assert ("with residual and norm" in pass_.table()) == (steps in (normed, added))


@pytest.mark.parametrize("steps", [summed, normed, added, in_place, along_columns])
def test_what_stays_is_as_it_was(steps: Any, workspace: Workspace, slower: None) -> None:
    module, before = built(steps), str(built(steps).graph)
    values = [str(node.meta.get("val")) for node in module.graph.nodes]
    pass_ = run_pass(module, workspace)
    assert str(module.graph) == before and len(pass_.report) == 1
    assert [str(node.meta.get("val")) for node in module.graph.nodes] == values
    if steps is along_columns:
        assert "along dimension 1 of 2" in pass_.table()


@pytest.mark.parametrize(
    ("weight", "rest", "reason"),
    [
        (torch.float32, (), "weight of its norm is torch.float32"),
        (torch.float16, (32,), "counts 32 elements of a row of 64"),
    ],
)
def test_norms_that_no_kernel_does_are_left(
    weight: torch.dtype, rest: tuple[int, ...], reason: str, workspace: Workspace, slower: None
) -> None:
    module = built(lambda *given: normed(*given, *rest), weight)
    assert reason in run_pass(module, workspace).table()


def test_another_group_is_left(workspace: Workspace, faster: None) -> None:
    pass_ = run_pass(built(summed), workspace, "dp:0")
    assert "it is of group tp:0, not 0" in pass_.table()


def test_a_range_is_asked_by_its_sizes(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BSP is faster from 8 tokens on, as the answers say."""

    def select(shape: Any, mode: str = "graph") -> Any:
        return told.select({} if shape.m >= 8 else None)(shape, mode)

    monkeypatch.setattr(tftune, "select_kernel", select)
    pass_ = CompilePass("0", workspace)

    def asked(size: int) -> tuple[Any, ...]:
        return (tftune.AllReduce(size, 64, 2, "fp16"),)

    tell_sizes(pass_, (1, 2, 4, 8, 16), 0)
    ours = engine_pass(Anything, pass_, asked, lambda: (1, 4))
    found = [ours.is_applicable_for_shape(size) for size in (1, 3, 8, None)]
    assert found == [True, True, False, True] and within(pass_.sizes, (3, 9)) == (4, 8)
    key = ours.uuid()
    pass_.sizes = (1,)
    assert ours.uuid() != key, "other sizes give other code"


@pytest.mark.parametrize(
    ("value", "place", "eager", "sizes"),
    [("1", 2, "1", (1, 2, 3, 4, 8, 16, 32, 64)), ("first", 0, "0", (1, 2))],
)
def test_the_pass_goes_behind_vllms_fusion_or_before_it(
    value: str, place: int, eager: str, sizes: tuple[int, ...], workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """And steps that vLLM does not capture are left to it unless it is asked otherwise."""
    monkeypatch.setenv("TFTUNE_VLLM", value)
    monkeypatch.setenv("TFTUNE_VLLM_EAGER", eager)
    fusion = type("AllReduceFusionPass", (), {})()
    manager: Any = SimpleNamespace(passes=[fusion, object()])
    manager.add = manager.passes.append
    config = SimpleNamespace(
        parallel_config=SimpleNamespace(tensor_parallel_size=2),
        scheduler_config=SimpleNamespace(max_num_batched_tokens=64),
        compilation_config=SimpleNamespace(cudagraph_capture_sizes=[1, 2]),
        model_config=None,
    )
    pass_ = CompilePass("0", workspace)
    vllm.add(manager, config, pass_, Anything, lambda: (1, 64))
    names = [type(one).__name__ for one in manager.passes]
    assert names.index("EnginePass") == place
    assert pass_.sizes == sizes and pass_.mode == "graph:2"
    assert manager.passes[place].is_applicable_for_range(SimpleNamespace(start=1, end=2))
    for first, last in ((3, 64), (2, 64), (3, 3)):  # beyond, not split there, a fixed size
        beyond = SimpleNamespace(start=first, end=last)
        assert manager.passes[place].is_applicable_for_range(beyond) == (eager == "1")
    said = [record.message for record in caplog.records if "are not captured" in record.message]
    assert [text.partition(":")[0] for text in said] == (
        [] if eager == "1" else ["tftune's plug-in leaves steps of 2 to 64 tokens as they are"]
    )


@pytest.mark.parametrize(
    ("captured", "most", "sizes"),
    [
        ((512, 8, 1, 8), 3000, (1, 8, 512, 513, 1024, 2048, 3000)),
        ((1, 300), 4096, (1, 300, 301, 512, 1024, 2048, 4096)),
        ((1, 300), 300, (1, 300)),
        ((1, 300), 0, (1, 300)),
        ((), 5, (1, 2, 4, 5)),
    ],
)
def test_what_an_engine_does_not_capture_is_asked_about_as_it_runs(
    captured: tuple[int, ...], most: int, sizes: tuple[int, ...], workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A kernel that needs much of the host gains in a graph alone."""
    asked = []

    def select(shape: Any, mode: str) -> Any:
        asked.append((shape.m, mode))
        return told.fused(shape, told.FASTER if mode == "graph" else told.SLOWER)

    monkeypatch.setattr(tftune, "select_kernel", select)
    pass_ = CompilePass("0", workspace)
    tell_sizes(pass_, captured, most)
    assert pass_.sizes == sizes
    last = max(captured, default=0)
    for size in sizes:
        assert pass_.may_replace(tftune.AllReduce(size, 64, 2, "fp16")), "it names a kernel"
    judged = Judge(workspace, pass_.mode, sizes)._at
    for size in sizes:
        assert judged(tftune.AllReduce(size, 64, 2, "fp16"), 0.0).faster == (size <= last)
    assert set(asked) == {(size, "graph" if size <= last else "eager") for size in sizes}
