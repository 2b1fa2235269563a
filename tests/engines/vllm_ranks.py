"""What each rank does in the tests with the real vLLM: its Llama layers, its pass manager, and our
plug-in, on CPU. Imported by ranks alone."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import ExitStack
from typing import Any

from tftune.kernels.comm.workspace import Workspace

HIDDEN, INNER, EPS = 64, 128, 1e-5
CAPTURED = [1, 2, 4, 8]


class Engine:
    """vLLM on this rank, with the plug-in registered as its entry point registers it."""

    def __init__(self, workspace: Workspace, variable: str, faster: Any) -> None:
        os.environ |= {"VLLM_TARGET_DEVICE": "cpu", "TFTUNE_VLLM": variable}
        import told
        import torch
        from vllm.config import CompilationConfig, VllmConfig, set_current_vllm_config
        from vllm.distributed import parallel_state
        from vllm.platforms import current_platform

        import tftune
        from tftune.engines.vllm import register
        from tftune.models.selector import Selector

        original = tftune.compile_pass
        tftune.compile_pass = lambda group, training: original(  # no GPU makes a workspace here
            group, training=training, workspace=workspace
        )
        tftune.select_kernel = told.select(faster)  # type: ignore[assignment]
        tftune.use(Selector())
        for _ in range(2):  # vLLM may load plug-ins twice
            register()
        # What CUDA and ROCm answer: collectives are operators in the graph.
        type(current_platform).use_custom_op_collectives = classmethod(lambda cls: True)
        compilation = CompilationConfig(cudagraph_capture_sizes=list(CAPTURED))
        self.config = VllmConfig(compilation_config=compilation)
        self.config.compilation_config.cudagraph_capture_sizes = list(CAPTURED)
        self.config.parallel_config.tensor_parallel_size = workspace.world
        self.plain_hash = self.config.compute_hash()
        self.stack = ExitStack()
        self.stack.enter_context(set_current_vllm_config(self.config))
        rank, world = workspace.rank, workspace.world
        parallel_state.init_distributed_environment(world, rank, "env://", rank, "gloo")
        parallel_state.initialize_model_parallel(world)
        self.group = parallel_state.get_tp_group()
        # CUDA's give a new tensor; that of CPUs writes in place, which inductor cannot know.
        communicator = self.group.device_communicator
        in_place = communicator.all_reduce
        communicator.all_reduce = lambda x: in_place(x.clone())
        self.torch = torch

    def manager(self) -> Any:
        """vLLM's pass manager as its backend configures it."""
        from vllm.compilation.passes.pass_manager import PostGradPassManager

        made = PostGradPassManager()
        made.configure(self.config)
        return made

    def layers(self, weight_dtype: Any = None) -> Any:
        """Two MLPs of vLLM's Llama and the norms behind them, of random weights: two all-reduces
        with a GEMM before, and a residual and a norm behind."""
        torch = self.torch
        from vllm.model_executor.layers.layernorm import RMSNorm
        from vllm.model_executor.layers.linear import LinearBase
        from vllm.model_executor.layers.utils import default_unquantized_gemm
        from vllm.model_executor.models.llama import LlamaMLP

        torch.set_default_dtype(torch.float16)
        mlps = [LlamaMLP(HIDDEN, INNER, "silu", prefix=f"layers.{i}.mlp") for i in range(2)]
        norms = [RMSNorm(HIDDEN, EPS, dtype=weight_dtype) for _ in range(2)]
        torch.set_default_dtype(torch.float32)
        own = torch.Generator().manual_seed(1 + self.group.rank_in_group)
        for module in (one for mlp in mlps for one in mlp.modules()):
            if isinstance(module, LinearBase):
                # What CUDA runs; that of CPUs is not in the graph as a GEMM.
                module.quant_method._gemm_impl = default_unquantized_gemm
                module.cpu_linear = torch.nn.functional.linear  # vLLM 0.23
                module.weight.data = 0.1 * torch.randn(module.weight.shape, generator=own)
                module.weight.data = module.weight.data.half()

        def forward(x: Any, residual: Any) -> Any:
            for mlp, norm in zip(mlps, norms, strict=True):
                x, residual = norm(mlp(x), residual)
            return x, residual

        return forward

    def compiled(self, forward: Any, manager: Any, tokens: Any) -> tuple[Counter[str], float]:
        """The layers compiled by inductor with vLLM's manager for a range of tokens: what the final
        graph calls, and the largest relative error beside the layers as they are."""
        import torch
        import torch._inductor.config
        from vllm.compilation.passes.inductor_pass import pass_context
        from vllm.compilation.passes.ir.inplace_functionalization import (
            VllmIRInplaceFunctionalizationPass,
        )
        from vllm.config.utils import Range

        shared = torch.Generator().manual_seed(0)
        x = torch.randn(8, HIDDEN, generator=shared).half()
        residual = torch.randn(8, HIDDEN, generator=shared).half()
        calls: Counter[str] = Counter()
        options = {
            "pre_grad_custom_pass": VllmIRInplaceFunctionalizationPass(self.config),
            "post_grad_custom_post_pass": manager,
        }
        torch._inductor.config.force_disable_caches = True
        torch._dynamo.reset()
        cleaned = manager.fix_functionalization

        def counted(graph: Any) -> None:
            """In the place of vLLM's last pass, which names operators of its CUDA library: there is
            none of them in these graphs, and no such library here."""
            calls.update(_name(node) for node in graph.nodes)

        counted.uuid = cleaned.uuid  # type: ignore[attr-defined]
        manager.fix_functionalization = counted
        torch._dynamo.mark_dynamic(x, 0)
        torch._dynamo.mark_dynamic(residual, 0)
        with torch.no_grad(), pass_context(Range(start=tokens[0], end=tokens[1])):
            expected = forward(x.clone(), residual.clone())
            fast = torch.compile(forward, fullgraph=True, options=options)
            found = fast(x.clone(), residual.clone())
        errors = [
            float((a.double() - b.double()).norm() / b.double().norm())
            for a, b in zip(found, expected, strict=True)
        ]
        return calls, max(errors)


def _name(node: Any) -> str:
    text = str(node.target)
    known = ("tftune.", "vllm.all_reduce", "vllm_ir.", "_c10d_functional.")
    return text if text.startswith(known) else "other"


def llama(workspace: Workspace, faster: Any) -> dict[str, Any]:
    """Two layers through the manager, for any number of tokens that is captured."""
    engine = Engine(workspace, "1", faster)
    manager = engine.manager()
    calls, error = engine.compiled(engine.layers(), manager, (1, CAPTURED[-1]))
    del calls["other"]
    return {
        "calls": dict(calls),
        "error": error,
        "table": table(),
        "passes": [type(one).__name__ for one in manager.passes],
        "name": engine.group.unique_name,
    }


def table() -> str:
    """The report of the pass that the plug-in made."""
    from tftune.engines.engine_pass import _MADE

    (pass_,) = _MADE.values()
    return pass_.table()


def wide_weight(workspace: Workspace) -> str:
    """A norm whose weight is fp32 and whose rows are fp16."""
    engine = Engine(workspace, "1", {"all_reduce": (5.0, 10.0)})
    manager = engine.manager()
    engine.compiled(engine.layers(engine.torch.float32), manager, (1, CAPTURED[-1]))
    return table()


def asked(workspace: Workspace, eager: str) -> dict[str, Any]:
    """What vLLM's manager and configuration ask our pass: ranges, uuid, hash. `eager`: whether
    steps are wanted that vLLM does not capture."""
    os.environ["TFTUNE_VLLM_EAGER"] = eager
    engine = Engine(workspace, "1", None)
    from vllm.compilation.passes.inductor_pass import pass_context
    from vllm.config.utils import Range

    manager = engine.manager()
    ours, ranges = manager.passes[-1], {}
    for start, end in ((1, 8), (9, 9), (10, 15), (9, 2048), (3000, 4000)):
        ranges[start, end] = ours.is_applicable_for_range(Range(start=start, end=end))
    found: dict[str, Any] = {"ranges": ranges}
    with pass_context(Range(start=1, end=8)):
        before, plain = manager.uuid(), manager.passes.pop()
        found["uuid of the manager has ours"] = manager.uuid() != before
        manager.passes.append(plain)
        found["uuid stays"] = manager.uuid() == before
        from tftune.engines.engine_pass import _MADE

        (pass_,) = _MADE.values()
        found["sizes"] = pass_.sizes
        hashed = engine.config.compute_hash()
        pass_.training = None
        found["uuid follows the pass"] = manager.uuid() != before
    found["hash has it"] = hashed != engine.plain_hash
    found["hash is as long"] = len(hashed) == len(engine.plain_hash)
    found["hash follows the pass"] = engine.config.compute_hash() != hashed
    compiled = engine.config.compilation_config
    for ends, captured in ((None, [1, 8, 512]), ([100], [4, 128]), (None, [])):
        compiled.compile_ranges_endpoints, compiled.cudagraph_capture_sizes = ends, captured
        for _ in range(2):  # vLLM computes them twice
            engine.config._set_compile_ranges()
        apart = [(one.start, one.end) for one in compiled.get_compile_ranges()]
        found.setdefault("apart", []).append(apart)
    return found
