"""The public face of tftune: which kernel and knobs to run for a shape, from measured times, in
about a microsecond.

>>> import tftune
>>> shape = tftune.AllGatherGemm(m=64, n=3584, k=8192, world=8)
>>> selector = tftune.load("all_gather_gemm__h200x8.json")  # doctest: +SKIP
>>> tftune.select_kernel(shape).config                      # doctest: +SKIP
Config('push', block_m=64, ...)

Importing it loads the standard library only, and no artifact.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from os import PathLike

    from tftune.confirm import warm_up
    from tftune.kernels.all_gather_gemm import AllGatherGemm
    from tftune.kernels.all_reduce import AllReduce
    from tftune.kernels.comm.workspace import Workspace
    from tftune.kernels.core.shape import Shape
    from tftune.kernels.core.space import Config
    from tftune.kernels.flash_decode import FlashDecode
    from tftune.models.selector import Selection, Selector

    __version__: str

__all__ = [
    "AllGatherGemm",
    "AllReduce",
    "Config",
    "FlashDecode",
    "Selection",
    "Selector",
    "Workspace",
    "__version__",
    "bind",
    "load",
    "select_kernel",
    "warm_up",
]

_PLACES = {
    "AllGatherGemm": "tftune.kernels.all_gather_gemm",
    "AllReduce": "tftune.kernels.all_reduce",
    "Config": "tftune.kernels.core.space",
    "FlashDecode": "tftune.kernels.flash_decode",
    "Selection": "tftune.models.selector",
    "Selector": "tftune.models.selector",
    "Workspace": "tftune.kernels.comm.workspace",
    "warm_up": "tftune.confirm",
}
_default: Selector | None = None


def __getattr__(name: str) -> Any:
    """Names are loaded when first asked for, so that importing tftune stays free."""
    if name == "__version__":
        return _version()
    if name not in _PLACES:
        raise AttributeError(
            f"module 'tftune' has no attribute {name!r}; it has {', '.join(__all__)}"
        )
    globals()[name] = value = getattr(importlib.import_module(_PLACES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("tftune")
    except PackageNotFoundError:
        return "0+source"


def load(
    path: str | PathLike[str] | None = None, target: str | None = None, allow_modelled: bool = False
) -> Selector:
    """Read and check artifacts once, and make them this process's default for `select_kernel`.

    `path`: one artifact file; None: every one shipped for `target`. `target`: the machine that runs
    ("h200x8"); None: this one, as torch sees it. Where a GPU is seen, fused leaves that were timed
    on another machine, GPU or Triton answer BSP and say why; another driver or torch is a warning.
    `allow_modelled`: serve predicted times, too. Raises ValueError, with the next command, where
    there is no artifact or it cannot be trusted.
    """
    selector = _install(_read(path, target, allow_modelled))
    for sentence in selector.warnings():
        warnings.warn(sentence, stacklevel=2)
    return selector


def _read(path: str | PathLike[str] | None, target: str | None, allow_modelled: bool) -> Selector:
    from dataclasses import replace
    from pathlib import Path

    from tftune.db.target import here
    from tftune.models.artifact import read_artifact
    from tftune.models.selector import Selector

    paths = [Path(path)] if path is not None else _shipped(target)
    artifacts = [read_artifact(found) for found in paths]
    if (
        target is not None
        and path is not None
        and (other := [a for a in artifacts if a.target.name != target])
    ):
        raise ValueError(
            f"{path} is for {other[0].target}, not for {target}; leave the target out, or name another file"
        )
    machine = here()
    if machine is not None and target is not None:
        machine = replace(
            machine, target=target
        )  # the caller knows better than a process that sees some of the GPUs
    return Selector(*artifacts, allow_modelled=allow_modelled, machine=machine)


def _install(selector: Selector) -> Selector:
    global _default
    _default = selector
    return selector


def _shipped(target: str | None) -> list[Any]:
    """The artifact files that come with tftune for this target."""
    from tftune.db.target import Target, detect
    from tftune.models.artifact import SHIPPED

    wanted = Target.parse(target) if target is not None else detect()
    if found := sorted(SHIPPED.glob(f"*__{wanted}.json")):
        return found
    shipped = ", ".join(sorted(path.stem for path in SHIPPED.glob("*.json"))) or "none"
    raise ValueError(
        f"no artifact is shipped for {wanted}; shipped: {shipped}; run `tftune search all_gather_gemm`, `tftune train all_gather_gemm` "
        "and `tftune export all_gather_gemm` there, and load that file"
    )


def select_kernel(shape: Shape, mode: str = "graph") -> Selection:
    """The config to run for this shape, and why; `mode`: "graph" (captured) or "eager". Loads the
    shipped artifacts on first use.

    Over several ranks call `bind` first: a rank that fell back to BSP alone would hang the others.
    """
    return (_default if _default is not None else _loaded_for(mode)).select(shape, mode)


def _loaded_for(mode: str) -> Selector:
    """What `load` finds; a mode that nothing answers is refused first."""
    from tftune.db.trial import MODES
    from tftune.kernels.core.shape import check_word

    check_word("mode", mode, MODES)
    return load()


def bind(
    group: Any = None,
    verdict: str = "ok",
    *,
    path: str | PathLike[str] | None = None,
    target: str | None = None,
    allow_modelled: bool = False,
) -> Selector:
    """Agree once, over a torch.distributed group, on what is selected: collective, every rank calls
    it before the first selection.

    With `path` or `target` it loads first, as `load` does, and so without where nothing was loaded.
    Compared are the artifacts' digests, the versions installed, what is disabled here and why, and
    each rank's `verdict` on its machine, which must be "ok". Any difference, or an artifact that
    one rank cannot load, and every rank selects BSP only, with the reason: nothing is raised on one
    rank alone.
    """
    try:
        import torch.distributed as dist
    except ImportError as error:
        raise ImportError(
            f"tftune.bind needs torch.distributed ({error}); `tftune doctor` says what to install"
        ) from error

    from tftune.models.selector import Selector

    wanted = (
        (path, target, allow_modelled)
        if _default is None or path is not None or target is not None
        else None
    )
    statement = _statement(verdict, wanted)
    statements: list[dict[str, Any]] = [{} for _ in range(dist.get_world_size(group))]
    dist.all_gather_object(statements, statement, group=group)
    selector = _default if _default is not None else Selector()
    reason = disagreement(statements)
    return selector if reason is None else _install(selector.restricted(reason))


def _statement(verdict: str, wanted: tuple[Any, ...] | None) -> dict[str, Any]:
    """What this rank would select by, `wanted` being what to load. Never raises: a rank that failed
    here would leave the others waiting."""
    from tftune.db.target import build

    try:
        selector = _default if wanted is None and _default is not None else load(*(wanted or ()))
        artifacts = {
            op: artifact.digest[:12] for op, artifact in sorted(selector.artifacts.items())
        }
        served = {"allow_modelled": selector.allow_modelled, "bsp_only": selector.bsp_only}
        return {
            "verdict": verdict,
            "artifacts": artifacts,
            "served": served,
            "disabled": selector.disabled(),
            "versions": build(),
        }
    except Exception as error:  # whatever it is, the other ranks wait for this statement
        return {"verdict": verdict, "artifacts": f"not loaded: {error}"}


def disagreement(statements: list[dict[str, Any]]) -> str | None:
    """The sentence for which ranks that stated this select BSP only, or None where all may select.

    >>> disagreement([{"verdict": "ok", "artifacts": {}}, {"verdict": "ok", "artifacts": {"all_gather_gemm": "f00"}}])
    "rank 1 differs from rank 0 in artifacts ({'all_gather_gemm': 'f00'} and {}): every rank selects BSP"
    """
    loaded = [
        f"rank {rank} has {s['artifacts']}"
        for rank, s in enumerate(statements)
        if isinstance(s.get("artifacts"), dict)
    ]
    for rank, statement in enumerate(statements):
        if isinstance(statement.get("artifacts"), str):
            return f"rank {rank} has {'; '.join([statement['artifacts'], *loaded[:1]])}: every rank selects BSP"
        if statement.get("verdict") != "ok":
            return f"the machine check of rank {rank} says {statement.get('verdict')!r}: every rank selects BSP"
    first = statements[0]
    for rank, statement in enumerate(statements):
        for name in sorted(first.keys() | statement.keys()):
            if statement.get(name) != first.get(name):
                return f"rank {rank} differs from rank 0 in {name} ({statement.get(name)} and {first.get(name)}): every rank selects BSP"
    return None
