"""Which configs are worth a measurement at a shape, where nothing was searched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path

from tftune.confirm import guesses, memory, relatives
from tftune.confirm.bench import Here
from tftune.db.evidence import BSP
from tftune.db.lock import StoreError
from tftune.db.row_files import read_rows
from tftune.db.target import Target
from tftune.db.trial import Trial
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.selector import Selector
from tftune.tuner.search.recipes import fitted
from tftune.tuner.search.warm_start import PastWinners

TOP = 6
"""Fused configs tried at a shape. On 2x H200 (2026-11-25), BSP over the best of the first 6 of a
search and of all 24: all_reduce 1.71 and 1.71, gemm_all_reduce 1.17 and 1.22, gemm_reduce_scatter
1.24 and 1.25, all_gather_gemm 1.20 and 1.20."""
PROVEN = frozenset({"interpreter", "sm_90"})
"""Architectures that kernels of committed rows ran on, and emulated ranks. On any other, the first
launches are made in child processes, which may hang."""
RELATED = 2
"""Configs that relatives propose, since those of another machine lose to the defaults at times."""


def candidates(
    shape: Shape,
    mode: str,
    selector: Selector,
    here: Here,
    top: int = TOP,
    may_run: Callable[[Config], bool] = lambda config: True,
) -> tuple[Config, ...]:
    """At most `top` fused configs that are possible for a shape, each once, in this order: what
    was measured on this machine before, the artifact's, what relatives propose, and the default of
    each variant beside the model's best of it.

    `mode`: "graph" or "eager". `may_run`: what else a config must pass. Empty where ranks did not
    agree on a selector. Reads the folder of answers, so one rank asks for all.
    """
    if selector.bsp_only or not top:
        return ()
    space = operation(shape.op).space

    def is_possible(config: Config) -> bool:
        return config.variant != BSP and space.why_invalid(shape, config, here.chip) is None

    proposed = (space.complete(config) for config in _proposed(shape, mode, selector, here, top))
    possible = filter(is_possible, dict.fromkeys(proposed))
    return tuple(islice(filter(may_run, possible), top))


def _proposed(
    shape: Shape, mode: str, selector: Selector, here: Here, top: int
) -> Iterator[Config]:
    won = _winners(shape.op, memory.folder(), here.target.partition("x")[0])
    yield from islice(_fitted(shape, won.near(shape, mode), here), RELATED)
    yield from selector.shortlist(shape, mode, top)
    of_relatives = _proposals(shape.op, here.target)(shape, mode)
    yield from islice(_fitted(shape, of_relatives, here), RELATED)
    yield from guesses.defaults(shape, mode, here.chip)


@cache
def _winners(op: str, folder: Path, chip: str) -> PastWinners:
    """Winners in all files of rows there, of this GPU under any software; a file that cannot be
    read proposes nothing."""
    trials: list[Trial] = []
    for path in sorted(folder.glob(f"{chip}*.jsonl")):
        try:
            trials += (trial for trial in read_rows(path)[1] if trial.op == op)
        except (OSError, StoreError, ValueError):
            continue
    return PastWinners(trials)


@cache
def _proposals(op: str, target: str) -> Callable[[Shape, str], list[Config]]:
    try:
        return relatives.proposals(relatives.artifacts(op, Target.parse(target)))
    except ValueError:  # emulated ranks, or GPUs of several kinds, have no relatives
        return lambda shape, mode: []


def _fitted(shape: Shape, configs: Iterable[Config], here: Here) -> Iterator[Config]:
    """The nearest possible config to each of another shape."""
    space = operation(shape.op).space
    for config in configs:
        if here.chip is None:
            yield config
        else:
            yield from fitted(space, shape, here.chip, config)[:1]
