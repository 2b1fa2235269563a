"""What runs when a variant is called, as digests: lowered code, and what the host does, in order.

usage: python tests/fingerprint.py [--renew]

Without --renew it prints what differs from tests/pins/. With it, pins of the installed Triton are
written anew: after `revision` was raised, for a new variant, or where a node showed equal times.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from tftune.kernels.core.chips import H200, MI300X
from tftune.kernels.core.registry import OPS, operation
from tftune.kernels.core.revision import installed
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.kernels.runtime.compile import KernelSource, gpu_target

PINS = Path(__file__).parent / "pins"
CALLS = 4
"""Pinned calls of a variant, at least."""
CHIPS = {"sm_90": H200, "gfx942": MI300X}
CONTROL, PAYLOAD, APART = 1 << 40, 1 << 44, 1 << 36
"""Addresses of the traced workspace: rank 0's control and payload, and how far ranks lie apart."""


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]


def lowered(source: KernelSource, arch: str) -> str:
    """The assembly of a kernel without comments, debug locations and names, and all that decides a
    launch beside it."""
    compiled = source.compile(gpu_target(arch))
    text = compiled.asm["ptx" if arch.startswith("sm") else "amdgcn"]
    text = re.split(r"^\s*\.section\s+\.?\"?\.debug", text, maxsplit=1, flags=re.M)[0]
    text = text.replace(source.kernel.fn.__name__, "kernel")
    lines = (re.sub(r"\s*(//|;).*", "", line).strip() for line in text.splitlines())
    code = [
        line
        for line in lines
        if line
        and not re.match(r"\.(loc|file|ident|target|version)\b|(\.L|\$L__)(tmp|func_|Ltmp)", line)
    ]
    options = sorted((name, str(value)) for name, value in source.options.items())
    return "\n".join(
        [*code, repr(options), repr(list(source.types.values())), repr(compiled.metadata.shared)]
    )


def device(shape: Shape, config: Config, arch: str) -> str:
    """The digest of the kernels of a call in their order."""
    sources = operation(shape.op).module("host").kernel_sources(shape, config, CHIPS[arch])
    return digest("\n".join(lowered(source, arch) for source in sources))


@dataclass
class Trace:
    """What the host did, a line each."""

    names: dict[int, str] = field(default_factory=dict)
    """Names of addresses that mean something."""
    lines: list[str] = field(default_factory=list)
    calling: bool = False
    """Preparing is over: what torch writes now is part of a call, and is noted rather than done."""

    def note(self, *words: object) -> None:
        self.lines.append(" ".join(map(self.word, words)))

    def word(self, value: Any) -> str:
        """An argument, without addresses that differ from run to run."""
        import torch

        if isinstance(value, torch.Tensor):
            name = self.names.get(value.data_ptr(), "")
            return (
                f"{name}{list(value.shape)}/{list(value.stride())}"
                if value.is_floating_point()
                else name or "integers"
            )
        if hasattr(value, "block_shape"):  # a tensor descriptor
            base, sizes = self.word(value.base.data_ptr()), (value.shape, value.strides)
            return f"desc({base} {sizes[0]} {sizes[1]} {value.block_shape})"
        if type(value) is int and value >= 1 << 20:
            return self.names.get(value) or next(
                (f"{name}{(value - base) // APART}+{(value - base) % APART}" for name, base in
                 (("payload", PAYLOAD), ("control", CONTROL)) if 0 <= value - base < 16 * APART),
                "scratch",
            )  # fmt: skip
        return str(value)


class Launched:
    """Stands for a compiled kernel: a launch is noted."""

    def __init__(self, trace: Trace, source: KernelSource) -> None:
        self._trace, self._source = trace, source
        self.n_regs, self.metadata = 32, SimpleNamespace(shared=1024)

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*values: Any) -> None:
            source = self._source
            given = [
                value
                for name, value in zip(source.kernel.arg_names, values, strict=True)
                if name in source.types
            ]
            self._trace.note("launch", grid, sorted(map(str, source.options.items())), *given)

        return launch


class Copies:
    """Stands for the run time's copy engines: each copy is noted."""

    def __init__(self, trace: Trace) -> None:
        self._trace, self._streams = trace, 0

    def stream(self) -> Any:
        self._streams += 1
        name, note = f"stream{self._streams}", self._trace.note
        return SimpleNamespace(
            name=name, wait_stream=lambda other: note(name, "waits for", other.name)
        )

    @contextmanager
    def using(self, stream: Any) -> Iterator[None]:
        self._trace.note("in", stream.name)
        yield
        self._trace.note("in main")

    def copy(self, piece: Any, target: int, source: int, stream: Any) -> None:
        self._trace.note("copy", piece, target, source, stream.name)


@contextmanager
def tracing(trace: Trace) -> Iterator[None]:
    """Launches, copies, collectives and library calls are noted rather than made, or beside it."""
    import torch
    import torch.distributed as dist
    from torch.distributed import _symmetric_memory as symmetric_memory
    from torch.utils._python_dispatch import TorchDispatchMode

    from tftune.kernels.all_reduce.variants import bsp
    from tftune.kernels.comm import copy_engine
    from tftune.kernels.comm.workspace import Workspace

    class Library(TorchDispatchMode):
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            made = [returned.alias_info for returned in function._schema.returns]
            if trace.calling and any(alias is not None and alias.is_write for alias in made):
                outputs = [kwargs["out"]] if kwargs and "out" in kwargs else []
                trace.note(str(function), *args, *outputs)
                return [*outputs, *args][0]
            return function(*args, **(kwargs or {}))

    def collective(name: str) -> Callable[..., None]:
        return lambda received, sent, group=None: trace.note(name, received, sent)

    def attention(q: Any, k: Any, v: Any, **options: Any) -> Any:
        backends = torch.nn.attention._cur_sdpa_kernel_backends()
        trace.note("attention", q, k, v, sorted(options.items()), sorted(map(str, backends)))
        return q

    def registered(self: Any) -> Any:
        if "registered buffers" not in trace.lines:  # once a plan
            trace.note("registered buffers")
        return nullcontext()

    main = SimpleNamespace(
        name="main", wait_stream=lambda other: trace.note("main waits for", other.name)
    )
    with ExitStack() as stack:
        for target, name, value in (
            (KernelSource, "compile", lambda source, target=None: Launched(trace, source)),
            (copy_engine, "Runtime", lambda arch: Copies(trace)),
            (copy_engine, "_main", lambda stream: main),
            (Workspace, "_registered", registered),
            (dist, "all_gather_into_tensor", collective("all_gather")),
            (dist, "all_to_all_single", collective("all_to_all")),
            (dist, "reduce_scatter_tensor", collective("reduce_scatter")),
            (dist, "all_reduce", lambda summed, group=None: trace.note("all_reduce", summed)),
            (bsp, "nccl_communicator", lambda workspace: 1 if workspace.arch == "cuda" else None),
            (bsp, "nccl_all_reduce", lambda *_: lambda x, y: trace.note("nccl all_reduce", x, y)),
            (torch.nn.functional, "scaled_dot_product_attention", attention),
            (symmetric_memory, "empty", torch.empty),
            (symmetric_memory, "rendezvous", lambda *_: trace.note("symmetric memory")),
            (
                torch.cuda,
                "get_device_properties",
                lambda device: SimpleNamespace(shared_memory_per_multiprocessor=233_472),
            ),
        ):
            stack.enter_context(mock.patch.object(target, name, value))
        stack.enter_context(Library())
        yield


def host_trace(shape: Shape, config: Config, arch: str) -> list[str]:
    """What preparing and two calls do on the host of rank 1."""
    import torch

    from tftune.kernels.comm.workspace import Workspace

    op, chip, trace = operation(shape.op), CHIPS[arch], Trace()
    generation = -(-op.module("host").payload_bytes(shape) // 4096) * 4096
    payload = torch.zeros(2 * generation, dtype=torch.uint8)
    bases = torch.arange(shape.world) * APART
    workspace = Workspace(
        rank=min(1, shape.world - 1), world=shape.world, arch=chip.can.backend, units=chip.units,
        device=torch.device("cpu"), group=SimpleNamespace(group_name="group"),
        control=CONTROL + APART, payload=PAYLOAD + APART,
        control_bases=bases + CONTROL, payload_bases=bases + PAYLOAD,
        generation_bytes=generation, payload_tensor=payload, chip=chip,
    )  # fmt: skip
    workspace.operands.size_bytes = 1 << 63  # all memory is the heap of a shape that asks
    operands = _operands(shape)
    trace.names |= {tensor.data_ptr(): name for name, tensor in operands.items()}
    for parity in (0, 1):
        trace.names[payload.data_ptr() + parity * generation] = f"generation{parity}"
    with tracing(trace):
        call = op.module("host").prepare(shape, config, workspace)
        trace.calling = True
        for _ in range(2):
            call(*operands.values())
    return trace.lines


def _operands(shape: Any) -> dict[str, Any]:
    """What a plan is called with; no value is ever read."""
    import torch

    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}[shape.dtype]

    def empty(*size: int) -> torch.Tensor:
        return torch.empty(*size, dtype=dtype)

    if shape.op == "all_gather_gemm":
        b = (shape.n, shape.k) if shape.b_layout == "nk" else (shape.k, shape.n)
        return {
            "a": empty(shape.shard_rows, shape.shard_columns),
            "b": empty(*b),
            "c": empty(shape.m, shape.n),
        }
    if shape.op in ("gemm_reduce_scatter", "gemm_all_reduce"):
        b = (shape.n, shape.inner) if shape.b_layout == "nk" else (shape.inner, shape.n)
        c = operation(shape.op).module("host").result_size(shape)
        return {"a": empty(shape.m, shape.inner), "b": empty(*b), "c": empty(*c)}
    if shape.op == "flash_prefill":
        rows = (shape.batch, shape.seq_len)
        heads = {"q": shape.q_heads, "k": shape.kv_heads, "v": shape.kv_heads, "out": shape.q_heads}
        return {name: empty(*rows, count, shape.head_dim) for name, count in heads.items()}
    if shape.op == "all_reduce":
        x = {"x": empty(shape.m, shape.n)}
        added = {"residual": empty(shape.m, shape.n), "weight": empty(shape.n)}
        out = {"out": empty(*operation(shape.op).module("host").result_size(shape))}
        return x | (added if shape.normed else {}) | out
    if shape.op == "merge_attention":
        o, out = empty(shape.batch, shape.heads, shape.head_dim), empty(64)
        return {"o": o, "lse": torch.empty(shape.batch, shape.heads), "out": out}
    words = torch.zeros(64, dtype=torch.int32)
    names = {name: empty(64) for name in ("q", "k", "v")}
    return names | {"lengths": words, "table": words.clone(), "out": empty(64)}


@dataclass(frozen=True)
class Sample:
    """One pinned call."""

    shape: Shape
    config: Config
    digests: dict[str, Any]

    def measured(self, arch: str) -> dict[str, str]:
        """The digests as they are here; empty where the chip cannot run the config."""
        op = operation(self.shape.op)
        if op.space.why_invalid(self.shape, self.config, CHIPS[arch]):
            return {}
        if arch.startswith("gfx") and self.config.variant.endswith("_ll"):
            return {}  # the LL protocol holds within one die
        host = digest("\n".join(host_trace(self.shape, self.config, arch)))
        return {"host": host, version("triton"): device(self.shape, self.config, arch)}


def samples(op: str) -> dict[str, tuple[int, list[Sample]]]:
    """By variant: the revision that is pinned, and the calls."""
    text = json.loads((PINS / f"{op}.json").read_text())
    parse = operation(op).shape.parse
    found = {}
    for variant, pinned in text.items():
        calls = [
            Sample(parse(one["shape"]), Config.from_dict(one["config"]), one["digests"])
            for one in pinned["calls"]
        ]
        found[variant] = pinned["revision"], calls
    return found


def differences(variant: str, revision: int, sample: Sample) -> Iterator[str]:
    """A sentence for each part of a call that is not what was pinned."""
    op = sample.shape.op
    if installed(op, variant) != f"r{revision}":
        yield (
            f"{op}/{variant} has revision {installed(op, variant)} and its pins are of "
            f"r{revision}; run `python tests/fingerprint.py --renew`"
        )
        return
    for arch in CHIPS:
        pinned = sample.digests.get(arch, {})
        for part, here in sample.measured(arch).items():
            if pinned.get(part) not in (None, here):
                what = (
                    "what the host does"
                    if part == "host"
                    else f"the code that Triton {part} lowers"
                )
                yield (
                    f"{what} for {sample.config} of {sample.shape} on {arch} has changed "
                    f"({pinned[part]} -> {here}) under the same revision {revision} of "
                    f"{op}/{variant}: raise it in kernels/{op}/space.py and measure again; or, "
                    "where paired rounds on a node show times within 1 %, run "
                    "`python tests/fingerprint.py --renew` and give the figures in the commit"
                )


def first_calls(op: str, variant: str) -> list[Sample]:
    """Calls to pin of a variant that has no pins: its defaults at shapes that other variants are
    pinned at, then at those of the named sets. Raises ValueError where it has fewer than CALLS."""
    space = operation(op).space
    others = (calls for name, (_, calls) in samples(op).items() if name != variant)
    shapes = dict.fromkeys(sample.shape for calls in others for sample in calls)
    for named in operation(op).shape_sets.values():
        shapes |= dict.fromkeys(named())
    found = {
        (shape, space.complete(config)): None
        for shape in shapes
        for chip in CHIPS.values()
        for config in space.defaults(shape, chip)
        if config.variant == variant
    }
    if len(found) < CALLS:
        raise ValueError(f"{op}/{variant} has {len(found)} default calls, not {CALLS}; pin others")
    return [Sample(*call, {}) for call in list(found)[:CALLS]]


def renew(op: str) -> None:
    """Write the pins of this Triton, keeping those of others where the revision is the same."""
    content, known = {}, samples(op)
    for variant in operation(op).space.variants:
        now = int(installed(op, variant)[1:])
        revision, calls = known.get(variant) or (now, first_calls(op, variant))
        content[variant] = {"revision": now, "calls": []}
        for sample in calls:
            digests = {}
            for arch in CHIPS:
                kept = sample.digests.get(arch, {}) if now == revision else {}
                if found := {**kept, **sample.measured(arch)}:
                    digests[arch] = dict(sorted(found.items()))
            content[variant]["calls"].append(
                {"shape": str(sample.shape), "config": sample.config.to_dict(), "digests": digests}
            )
    (PINS / f"{op}.json").write_text(json.dumps(content, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--renew", action="store_true", help="write the pins of the installed Triton"
    )
    if parser.parse_args().renew:
        for op in OPS:
            renew(op)
        return
    wrong = [
        text for op in OPS for variant, (revision, calls) in samples(op).items()
        for sample in calls for text in differences(variant, revision, sample)
    ]  # fmt: skip
    print("\n".join(wrong) or "all as pinned")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
