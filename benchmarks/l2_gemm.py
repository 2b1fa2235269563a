"""What the L2 model says beside what was published of tile orders of GEMMs on chips of eight dies,
and beside the formula that it replaced.

usage: python benchmarks/l2_gemm.py [--fit]

`l2_gemm_figures.py` names the sources. A GEMM has one parameter of its own,
`models.l2.GEMM_DRIFT`; every second figure fits it, and all others test. `--fit` tries other
values. Everything here is modelled: no GPU of AMD has run it.

A speed is that of the slower of two things that overlap: the products, at the rate of the order
that was published as the fastest, and what the L2 of dies miss, at the rate of MI300X's last-level
cache. Both models are given the same two rates.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from math import ceil
from unittest import mock

from l2 import DRIFTS, MARGIN, TIE, root_mean_square
from l2_gemm_figures import DIES, FIGURES, FIT, TEST, UNITS, Figure, Gemm, Order

from tftune.kernels.core.chips import MI300X
from tftune.kernels.core.tile_order import by_die, tile_order
from tftune.models import l2
from tftune.models.timeline.costs import overlap, wave

HitRate = Callable[[Gemm, Order], float]
DRIFTS_OF_GEMM = (0.0, *DRIFTS)


def tiles(gemm: Gemm) -> tuple[int, int]:
    return ceil(gemm.m / gemm.block_m), ceil(gemm.n / gemm.block_n)


def place(gemm: Gemm, order: Order, number: int) -> tuple[int, int]:
    """Row and column tile of the block that was dealt as this one."""
    tiles_m, tiles_n = tiles(gemm)
    count = tiles_m * tiles_n
    if order.from_columns:
        column, row = divmod(number, tiles_m)
        number = row * tiles_n + column
    if order.chunk is None:
        number = by_die(number, count, DIES)
    elif order.chunk and number < count // (DIES * order.chunk) * DIES * order.chunk:
        turn, die = divmod(number, DIES)
        run, within = divmod(turn, order.chunk)
        number = (run * DIES + die) * order.chunk + within
    return tile_order(number, tiles_m, tiles_n, order.window)


def modelled(gemm: Gemm, order: Order) -> float:
    """The hit rate that `models.l2` plays: one block on a unit at a time, taken as dealt."""
    return _played(gemm, order, l2.GEMM_DRIFT)


@lru_cache
def _played(gemm: Gemm, order: Order, drift: float) -> float:
    line = gemm.k * gemm.element_bytes

    def program(number: int) -> l2.Reads:
        row, column = place(gemm, order, number)
        return (("A", row), gemm.block_m * line), (("B", column), gemm.block_n * line)

    tiles_m, tiles_n = tiles(gemm)
    return l2.hit_rate(l2.Die(UNITS, DIES), program, tiles_m * tiles_n, drift)


def former(gemm: Gemm, order: Order) -> float:
    """The hit rate of the formula that `Costs` had before: each die fetches once what its units
    read at a time, and blocks that are dealt in turn share one row only."""
    tiles_m, tiles_n = tiles(gemm)
    rows, columns = (
        (1, min(UNITS, tiles_n))
        if order.chunk == 0
        else wave(tiles_m, tiles_n, order.window, UNITS)
    )
    fetched = (rows * gemm.block_m + columns * gemm.block_n) / (rows * columns)
    return 1 - fetched / (gemm.block_m + gemm.block_n)


def missed_bytes(gemm: Gemm, hit_rate: float) -> float:
    tiles_m, tiles_n = tiles(gemm)
    read = tiles_m * tiles_n * (gemm.block_m + gemm.block_n) * gemm.k * gemm.element_bytes
    return read * (1 - hit_rate)


def us(gemm: Gemm, hit_rate: float, flops_per_us: float) -> float:
    products_us = 2 * gemm.m * gemm.n * gemm.k / flops_per_us
    return overlap(products_us, missed_bytes(gemm, hit_rate) / MI300X.rates.fabric_bytes_per_us)


def value(figure: Figure, hit_rate: HitRate) -> float:
    """What stands beside the published figure."""
    hit = hit_rate(figure.gemm, figure.order)
    if figure.fastest is None:
        return hit
    best = hit_rate(figure.gemm, figure.fastest)
    return us(figure.gemm, best, figure.flops_per_us) / us(figure.gemm, hit, figure.flops_per_us)


def error(figures: Sequence[Figure], hit_rate: HitRate, kind: str = "") -> float:
    """The root mean square error, of all figures or of one kind."""
    kept = [figure for figure in figures if kind in ("", figure.kind)]
    return root_mean_square([value(figure, hit_rate) - figure.published for figure in kept])


def error_with(drift: float, figures: Sequence[Figure]) -> float:
    with mock.patch.object(l2, "GEMM_DRIFT", drift):
        return error(figures, modelled)


def ranked(hit_rate: HitRate) -> tuple[int, int]:
    """Pairs of orders of one GEMM that were published apart, as in `l2.ranked`: how many are put in
    the same order, out of how many."""
    groups: dict[tuple[Gemm, str], dict[Order, tuple[float, float]]] = {}
    for figure in FIGURES:
        group = groups.setdefault((figure.gemm, figure.kind), {})
        group[figure.order] = figure.published, value(figure, hit_rate)
        if figure.fastest is not None:
            group[figure.fastest] = 1.0, 1.0
    same = pairs = 0
    for group in groups.values():
        for first, second in combinations(group.values(), 2):
            published, said = (a - b for a, b in zip(first, second, strict=True))
            if abs(published) >= TIE - 1e-9:
                pairs += 1
                same += said * published > 0 and abs(said) >= MARGIN
    return same, pairs


def table() -> Iterator[str]:
    """Markdown: each figure, published, modelled and by the former formula."""
    yield "| GEMM | of | order | published | modelled | error | formula | its error | used to |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for number, figure in enumerate(FIGURES):
        said, before = value(figure, modelled), value(figure, former)
        yield (
            f"| {figure.gemm.name} | {figure.kind} | {figure.order.name} | {figure.published:.2f} "
            f"| {said:.2f} | {said - figure.published:+.2f} | {before:.2f} "
            f"| {before - figure.published:+.2f} | {'test' if number % 2 else 'fit'} |"
        )


def errors() -> Iterator[str]:
    """Markdown: root mean square errors, and pairs ranked as published."""
    yield "| | hit rates | speeds | fitted half | held-out half | all | pairs ranked right |"
    yield "|---|---|---|---|---|---|---|"
    rows: dict[str, tuple[float | None, HitRate]] = {
        "the former formula": (None, former),
        f"drift of attention, {l2.DRIFT}": (l2.DRIFT, modelled),
        f"drift of its own, {l2.GEMM_DRIFT}, in use": (l2.GEMM_DRIFT, modelled),
    }
    for name, (drift, hit_rate) in rows.items():
        with mock.patch.object(l2, "GEMM_DRIFT", drift):
            kinds = [error(FIGURES, hit_rate, kind) for kind in ("hit", "speed")]
            found = [*kinds, *(error(figures, hit_rate) for figures in (FIT, TEST, FIGURES))]
            same, pairs = ranked(hit_rate)
        yield f"| {name} | {' | '.join(f'{each:.3f}' for each in found)} | {same} of {pairs} |"


def fit() -> Iterator[str]:
    """A line for each drift, then the best one."""
    found = {drift: error_with(drift, FIT) for drift in DRIFTS_OF_GEMM}
    for drift, each in found.items():
        yield f"drift {drift:.3f}: root mean square error {each:.4f}"
    best = min(found, key=found.__getitem__)
    yield f"best: {best:.3f}: {found[best]:.4f}, on the others {error_with(best, TEST):.4f}"


def result() -> str:
    same, pairs = ranked(modelled)
    return (
        f"RESULT l2_gemm drift={l2.GEMM_DRIFT} fit_rms={error(FIT, modelled):.3f} "
        f"test_rms={error(TEST, modelled):.3f} hits={error(FIGURES, modelled, 'hit'):.3f} "
        f"speeds={error(FIGURES, modelled, 'speed'):.3f} ranked_right={same}/{pairs} "
        f"former_hits={error(FIGURES, former, 'hit'):.3f} "
        f"former_speeds={error(FIGURES, former, 'speed'):.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fit", action="store_true", help="try other drifts")
    if parser.parse_args().fit:
        print(*fit(), sep="\n")
        return
    print(*table(), "", *errors(), result(), sep="\n")


if __name__ == "__main__":
    main()
