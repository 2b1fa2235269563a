"""The public face of tftune: which kernel and knobs to run for a shape, and what that rests on, in
about a microsecond.

>>> import tftune
>>> shape = tftune.AllGatherGemm(m=64, n=3584, k=8192, world=8)
>>> selector = tftune.load(target="h200x8")
>>> selector.select(shape).config.variant, selector.select(shape).source
('push', 'measured')

`tftune.use(selector)` makes it what `tftune.select_kernel` and `tftune.ops` ask in this process.
Importing tftune loads the standard library only, and no artifact. What costs performance is logged
once for each cause, as a warning of the logger `tftune`.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tftune import ops as ops
    from tftune.confirm.warm_up import warm_up as warm_up
    from tftune.graph_pass.inductor import compile_pass as compile_pass
    from tftune.hot_swap import swap as swap
    from tftune.kernels.all_gather_gemm import AllGatherGemm as AllGatherGemm
    from tftune.kernels.all_reduce import AllReduce as AllReduce
    from tftune.kernels.comm.workspace import Workspace as Workspace
    from tftune.kernels.core.registry import payload_bytes as payload_bytes
    from tftune.kernels.core.shape import Shape
    from tftune.kernels.core.space import Config as Config
    from tftune.kernels.flash_decode import FlashDecode as FlashDecode
    from tftune.kernels.flash_decode.lengths import Facts as Facts
    from tftune.kernels.flash_prefill import FlashPrefill as FlashPrefill
    from tftune.kernels.gemm_all_reduce import GemmAllReduce as GemmAllReduce
    from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter as GemmReduceScatter
    from tftune.kernels.merge_attention import MergeAttention as MergeAttention
    from tftune.loading import Paths
    from tftune.models.selection import Selection as Selection
    from tftune.models.selector import Selector as Selector
    from tftune.recorder import Recorder
    from tftune.recorder import capture as capture
    from tftune.recorder import count_replays as count_replays

    __version__: str

_PLACES = {
    "AllGatherGemm": "tftune.kernels.all_gather_gemm",
    "AllReduce": "tftune.kernels.all_reduce",
    "Config": "tftune.kernels.core.space",
    "Facts": "tftune.kernels.flash_decode.lengths",
    "FlashDecode": "tftune.kernels.flash_decode",
    "FlashPrefill": "tftune.kernels.flash_prefill",
    "GemmAllReduce": "tftune.kernels.gemm_all_reduce",
    "GemmReduceScatter": "tftune.kernels.gemm_reduce_scatter",
    "MergeAttention": "tftune.kernels.merge_attention",
    "Selection": "tftune.models.selection",
    "Selector": "tftune.models.selector",
    "Workspace": "tftune.kernels.comm.workspace",
    "capture": "tftune.recorder",
    "count_replays": "tftune.recorder",
    "payload_bytes": "tftune.kernels.core.registry",
    "swap": "tftune.hot_swap",
    "compile_pass": "tftune.graph_pass.inductor",
    "warm_up": "tftune.confirm.warm_up",
}
__all__ = sorted([*_PLACES, "__version__", "bind", "load", "select_kernel", "use"])
_default: Selector | None = None
_capture: Recorder | None = None
"""What counts the shapes that are run; None where nothing does."""


def __getattr__(name: str) -> Any:
    """Names are loaded when first asked for, so that importing tftune stays free."""
    if name == "__version__":
        return _version()
    if name == "ops":  # needs torch
        return importlib.import_module("tftune.ops")
    if name not in _PLACES:
        raise AttributeError(
            f"module 'tftune' has no attribute {name!r}; it has {', '.join(__all__)}"
        )
    globals()[name] = value = getattr(importlib.import_module(_PLACES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "ops"])


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("tftune")
    except PackageNotFoundError:
        return "0+source"


def load(
    path: Paths | None = None,
    target: str | None = None,
    allow_modelled: bool = False,
    *,
    url: str | None = None,
    stage: str = "stable",
) -> Selector:
    """Read and check artifacts once; returns what selects by them, and changes nothing else.

    `path`: an artifact file, a folder of them, or a sequence of either. They are asked first, in
    this order; then those of the variable TFTUNE_ARTIFACTS; then those that ship for the machine,
    which TFTUNE_ARTIFACTS=none hides. The first that has a layout in a mode answers for it.
    `target`: the machine that runs ("h200x8"); None: this one, as torch sees it. Where a GPU is
    seen, fused leaves that were timed on another machine, GPU or Triton answer BSP and say why;
    another driver or torch is a warning. `allow_modelled`: serve predicted times, too. `url`: a
    fleet's service, asked for its artifacts of `target` in `stage`, as the client's configuration
    file says (docs/fleet.md), and for nothing else; while it is away the last good ones serve,
    which is logged once. A machine without any artifact gets a selector that answers BSP. Raises
    ValueError, with the next command, where a path is missing or cannot be trusted, where no GPU
    is seen and neither `path` nor `target` is given, and for an unknown target.

    >>> import tftune
    >>> selector = tftune.load(target="h200x8")
    >>> sorted(selector.artifacts)
    ['all_gather_gemm', 'all_reduce', 'flash_decode', 'gemm_all_reduce', 'gemm_reduce_scatter']
    """
    from tftune.loading import selector_of

    return _warned(selector_of(path, target, allow_modelled, url=url, stage=stage))


def _warned(selector: Selector) -> Selector:
    """The selector, after one warning for each difference that is served all the same."""
    for sentence in selector.warnings():
        warnings.warn(sentence, stacklevel=3)
    return selector


def use(selector: Selector) -> Selector:
    """Make this selector the one that `select_kernel`, `tftune.ops` and `warm_up` ask in this
    process; returns it.

    Over several ranks `bind` does it, once all of them agree. Raises TypeError for anything else
    than a selector.

    >>> import tftune
    >>> selector = tftune.use(tftune.load(target="h200x8"))
    >>> shape = tftune.AllGatherGemm(m=64, n=3584, k=8192, world=8)
    >>> tftune.select_kernel(shape) is selector.select(shape)
    True
    """
    from tftune.models.selector import Selector

    global _default
    if not isinstance(selector, Selector):
        raise TypeError(f"use takes a Selector, as tftune.load returns, and not {selector!r:.80}")
    _default = selector
    if _capture is None:
        _capture_if_asked()
    return selector


def _capture_if_asked() -> None:
    """Count what this process runs where TFTUNE_CAPTURE names a file: each process that selects
    comes by here before its first call, whoever wrote its code."""
    import os

    if path := os.environ.get("TFTUNE_CAPTURE"):
        from tftune.recorder import capture, of_this_process

        capture(of_this_process(path))


def select_kernel(shape: Shape, mode: str = "graph", facts: Facts | None = None) -> Selection:
    """The config to run for this shape, and why; `mode`: "graph" (captured) or "eager"; `facts`:
    what this rank knows of the lengths of flash_decode, see docs/facts.md.

    Asks the selector that `use` or `bind` was given; without one it uses the shipped artifacts of
    this machine. To ask another one, call its `select`. Over several ranks call `bind` first: a
    rank that fell back to BSP alone would hang the others. Raises ValueError for an unknown mode,
    and where nothing can be loaded; TypeError for what is no shape.

    >>> import tftune
    >>> selector = tftune.use(tftune.load(target="h200x8"))
    >>> shape = tftune.AllGatherGemm(m=64, n=3584, k=8192, world=8)
    >>> tftune.select_kernel(shape).config.variant
    'push'
    """
    if _capture is not None:
        _capture.asked(shape, mode)
    selector = _default if _default is not None else _loaded_for(shape, mode)
    return selector.select(shape, mode) if facts is None else selector.select(shape, mode, facts)


def _loaded_for(shape: Shape, mode: str) -> Selector:
    """What `load` finds, from now on the default; what nothing answers is refused first."""
    from tftune.db.trial import MODES
    from tftune.kernels.core.shape import Shape, check_word
    from tftune.models.selector import no_shape

    if not isinstance(shape, Shape):
        raise no_shape(shape)
    check_word("mode", mode, MODES)
    return use(load())


def bind(
    group: Any = None,
    verdict: str = "ok",
    *,
    selector: Selector | None = None,
    path: Paths | None = None,
    url: str | None = None,
    target: str | None = None,
    allow_modelled: bool = False,
) -> Selector:
    """Agree once, over a torch.distributed group, on what is selected: collective, every rank calls
    it before the first selection.

    Takes `selector`, else what `load` finds for a `path`, `url` or `target`, else what `use` was
    given, else this machine's shipped artifacts; from then on it is the one used. What it loads
    itself is for a machine of as many GPUs as the group has ranks, unless `target` names another:
    four ranks on a node of eight H200 are h200x4. Without an artifact every answer is BSP until
    `warm_up` measures. Compared are the artifacts' digests, the versions installed, what is
    disabled here and why, and each rank's `verdict` on its machine, which must be "ok". Any
    difference, or an artifact that one rank cannot load, and every rank selects BSP only, with the
    reason, which is logged: nothing is raised on one rank alone. Raises ImportError without torch,
    TypeError for what is no group.

    >>> import tftune, torch.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> selector = tftune.bind(dist.group.WORLD, target="h200x8")
    >>> shape = tftune.AllGatherGemm(m=64, n=3584, k=8192, world=8)
    >>> tftune.select_kernel(shape).config.variant
    'push'
    >>> dist.destroy_process_group()
    """
    from tftune.agreement import exchanged, first_difference
    from tftune.models.compatibility import log_once
    from tftune.models.selector import Selector

    named = selector, path, url, target, allow_modelled
    found, statements = exchanged("tftune.bind", group, verdict, named, _default)
    if (difference := first_difference(statements)) is None and isinstance(found, Selector):
        return use(found)
    reason = f"{difference}: every rank selects BSP"
    log_once(f"tftune.bind: {reason}; compare what `tftune doctor --json` says on the ranks")
    sound = found if isinstance(found, Selector) else _default or Selector()
    return use(sound.restricted(reason))
