"""The plug-in for vLLM, as entry point `vllm.general_plugins`. It is on where TFTUNE_VLLM=1.

Four functions of vLLM are wrapped. Behind `_set_compile_ranges` of the configuration, its compile
ranges are split: each gets a graph of its own, in which the pass takes what gains most there.
Behind `initialize_model_parallel`, where all ranks are in step and no memory was measured yet, the
pass of the tensor-parallel group is made. `compute_hash` gets the pass's digest, since vLLM's own
cache of compiled graphs asks no pass. Behind `PostGradPassManager.configure` the pass goes to the
end of the list: FlashInfer's fusion of all-reduce and norm has taken its nodes by then, and is not
among what our kernels were measured against. TFTUNE_VLLM=first puts it before that fusion.
Steps that vLLM does not capture stay as they are, unless TFTUNE_VLLM_EAGER=1: on nodes they were
not reliably faster. TFTUNE_VLLM_ALL_REDUCE=1 lets vLLM's own all-reduce compete as a form of BSP.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from hashlib import sha256
from typing import Any

VARIABLE = "TFTUNE_VLLM"
FIRST = "first"
FUSIONS = ("AllReduceFusionPass", "RocmAiterAllReduceFusionPass")
"""vLLM's own passes that take all-reduces."""
RANGES = 32, 256
"""Where vLLM's compile ranges are split, and at the largest captured size. On 2x H200 the pass
takes a GEMM with its all-reduce up to 32 tokens, an all-reduce with its norm up to 256."""
OWN_ALL_REDUCE = "TFTUNE_VLLM_ALL_REDUCE"
EAGER = "TFTUNE_VLLM_EAGER"
NEEDED = (
    "_IS_CAPTURING", "all_reduce", "close", "fully_connected", "group", "max_size",
    "register_graph_buffers", "world_size",
)  # fmt: skip
"""What is called of vLLM's class `CustomAllreduce`."""
ALLOCATORS = "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"
_HOOKED = "_tftune_hooked"


def register() -> None:
    """Hook vLLM where the variable says so. vLLM calls it in every process, at times twice. A vLLM
    without one of the interfaces is left alone, with one warning."""
    if not _is_on(VARIABLE):
        return
    from tftune.models.compatibility import log_once

    try:
        import vllm
        from vllm.compilation.passes.inductor_pass import InductorPass, get_pass_context
        from vllm.compilation.passes.pass_manager import PostGradPassManager
        from vllm.config import VllmConfig
        from vllm.distributed import parallel_state

        needed = (
            (PostGradPassManager, "configure"), (VllmConfig, "compute_hash"),
            (VllmConfig, "_set_compile_ranges"),
            (parallel_state, "initialize_model_parallel"), (parallel_state, "get_tp_group"),
            (InductorPass, "is_applicable_for_range"),
        )  # fmt: skip
        for owner, name in needed:
            getattr(owner, name)
    except (ImportError, AttributeError) as error:
        log_once(f"tftune's plug-in does not fit this vLLM, which runs unchanged: {error}")
        return

    def range_now() -> tuple[int, int]:
        compiled = get_pass_context().compile_range
        return compiled.start, compiled.end

    # Hooks stay where a process, or one forked from it, makes an engine without the plug-in.
    def ranged(_: None, config: Any) -> None:
        if _is_on(VARIABLE):
            split(config)

    def begun(_: None, *given: Any, **named: Any) -> None:
        if not _is_on(VARIABLE):
            return
        from tftune.engines.engine_pass import pass_of

        group = parallel_state.get_tp_group()
        if group.world_size > 1:
            offer_all_reduce(group, str(getattr(vllm, "__version__", "")))
            pass_of(group.unique_name, group.device_group, "vLLM")

    def hashed(found: str, config: Any, *given: Any, **named: Any) -> str:
        pass_ = _pass(parallel_state)
        if pass_ is None:
            return found
        tell(pass_, config)
        return sha256(f"{found} {pass_.uuid()}".encode()).hexdigest()[: len(found)]

    def configured(_: None, manager: Any, config: Any) -> None:
        pass_ = _pass(parallel_state)
        if pass_ is not None:
            add(manager, config, pass_, InductorPass, range_now)

    _behind(VllmConfig, "_set_compile_ranges", ranged)
    _behind(parallel_state, "initialize_model_parallel", begun)
    _behind(VllmConfig, "compute_hash", hashed)
    _behind(PostGradPassManager, "configure", configured)


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "0") not in ("", "0")


class CustomAllReduce:
    """vLLM's own all-reduce of one group, as a form of BSP (`kernels.core.engine_all_reduce`)."""

    def __init__(self, inner: Any) -> None:
        self._inner, self._whole = inner, True
        self.close = inner.close

    def fits(self, size_bytes: int) -> bool:
        """As vLLM's `should_custom_ar` decides for contiguous tensors."""
        inner = self._inner
        linked = inner.world_size == 2 or inner.fully_connected
        return bool(linked and size_bytes % 16 == 0 and size_bytes < inner.max_size)

    def all_reduce(self, x: Any, y: Any) -> None:
        """Where vLLM captures, x is read in place, and registered with its peers at the end of the
        capture; else it is copied to where they can read."""
        import torch

        if not self._whole:
            raise RuntimeError("a capture of vLLM's own all-reduce failed on one of the ranks")
        captured = self._inner._IS_CAPTURING and torch.cuda.is_current_stream_capturing()
        self._inner.all_reduce(x, out=y, registered=captured)

    @contextmanager
    def capturing(self) -> Iterator[None]:
        """As vLLM's `capture`, which would register half a capture, too, and end the process."""
        import torch.distributed as dist

        inner, done = self._inner, False
        inner._IS_CAPTURING = True
        try:
            yield
            done = True
        finally:
            inner._IS_CAPTURING = False
            told: list[Any] = [None] * inner.world_size
            dist.all_gather_object(told, done, group=inner.group)
            self._whole = self._whole and all(told)
        if not self._whole:
            raise RuntimeError("another rank could not capture vLLM's own all-reduce")
        inner.register_graph_buffers()


def offer_all_reduce(group: Any, version: str) -> None:
    """vLLM's own all-reduce, where this group has it and calls it first, becomes a form of BSP."""
    from tftune.kernels.core import engine_all_reduce
    from tftune.models.compatibility import log_once

    communicator = group.device_communicator
    inner = getattr(communicator, "ca_comm", None)
    if not _is_on(OWN_ALL_REDUCE) or inner is None or inner.disabled:
        return
    if why := _why_not(communicator, inner):
        log_once(f"tftune's plug-in leaves out vLLM's own all-reduce: {why}")
        return

    def make() -> CustomAllReduce:
        made = type(inner)(group.cpu_group, group.device, inner.max_size)
        if made.disabled:
            raise RuntimeError("vLLM made no second all-reduce of its own for what is timed")
        return CustomAllReduce(made)

    own = CustomAllReduce(inner)
    name = f"vllm {version} up to {inner.max_size} bytes"
    offered = engine_all_reduce.Offer(name, group.world_size, own, make)
    engine_all_reduce.offer(group.device_group, offered)


def _why_not(communicator: Any, inner: Any) -> str | None:
    """Why vLLM's own all-reduce cannot be a form of BSP, or None."""
    if missing := [name for name in NEEDED if not hasattr(inner, name)]:
        return f"it has no {missing[0]}"
    others = "fi_ar_comm", "qr_comm"
    for other in (getattr(communicator, name, None) for name in others):
        if other is not None and not other.disabled:
            return f"{type(other).__name__} comes before it"
    if _is_on("VLLM_USE_NCCL_SYMM_MEM"):
        return "NCCL's symmetric memory comes before it"
    allocator = (os.environ.get(name, "") for name in ALLOCATORS)
    if any("expandable_segments:true" in text.lower() for text in allocator):
        return "it cannot register memory of expandable segments"
    return None


def add(
    manager: Any, config: Any, pass_: Any, base: Any, range_now: Callable[[], tuple[int, int]]
) -> None:
    """Our pass in a manager's list: at its end, or before vLLM's fusion of all-reduces."""
    from tftune.engines.engine_pass import engine_pass, shapes_of

    ranks = config.parallel_config.tensor_parallel_size
    shapes = shapes_of(_fields(config), ranks)
    tell(pass_, config)
    last = max(config.compilation_config.cudagraph_capture_sizes or [0])
    most = None if _is_on(EAGER) else last
    manager.add(engine_pass(base, pass_, shapes, range_now, most))
    if os.environ.get(VARIABLE) == FIRST:
        names = [type(one).__name__ for one in manager.passes]
        places = [place for place, name in enumerate(names) if name in FUSIONS]
        manager.passes.insert(min(places, default=len(names) - 1), manager.passes.pop())


def split(config: Any) -> None:
    """Add the ends of our ranges to those of vLLM and of its user, if tensor parallelism is on.

    Not where vLLM's own fusion takes most all-reduces first, nor for encoders that are compiled,
    whose graphs may have no number of tokens. A range of one number is none: vLLM would tune it as
    a fixed size.
    """
    compiled = config.compilation_config
    ends, last = compiled.compile_ranges_endpoints, max(compiled.cudagraph_capture_sizes or [1])
    fused = getattr(compiled.pass_config, "fuse_allreduce_rms", False)
    behind = fused and os.environ.get(VARIABLE) != FIRST
    alone = config.parallel_config.tensor_parallel_size == 1
    if alone or behind or getattr(compiled, "compile_mm_encoder", False) or not ends:
        return
    for end in (last, *(end for end in RANGES if end < last)):
        if 1 < end < max(ends) and all(abs(end - other) > 1 for other in ends):
            ends = sorted([*ends, end])
    compiled.compile_ranges_endpoints = ends


def tell(pass_: Any, config: Any) -> None:
    """The pass learns the numbers of tokens that vLLM captures, and the most tokens that a step has
    where it shall take steps that are not captured."""
    from tftune.engines.engine_pass import tell_sizes

    captured = config.compilation_config.cudagraph_capture_sizes or []
    most = config.scheduler_config.max_num_batched_tokens or 0
    tell_sizes(pass_, captured, most if _is_on(EAGER) else 0)


def _fields(config: Any) -> dict[str, Any]:
    """The fields of the model's `config.json`, with the dtype that vLLM computes in."""
    model = config.model_config
    if model is None:
        return {}
    return {**model.hf_text_config.to_dict(), "torch_dtype": str(model.dtype)}


def _pass(parallel_state: Any) -> Any:
    """The pass of the tensor-parallel group; None before there is one."""
    from tftune.engines.engine_pass import made_pass

    group = getattr(parallel_state, "_TP", None)
    return None if group is None else made_pass(group.unique_name)


def _behind(owner: Any, name: str, after: Callable[..., Any]) -> None:
    """Call `after(result, *arguments)` behind a function, once for all; what it returns is the
    result, where the function has one."""
    original = getattr(owner, name)
    if getattr(original, _HOOKED, False):
        return

    @wraps(original)
    def call(*given: Any, **named: Any) -> Any:
        return after(original(*given, **named), *given, **named)

    setattr(call, _HOOKED, True)
    setattr(owner, name, call)
