"""What the L2 model says beside what was published of orders of programs on chips of eight dies.

usage: python benchmarks/l2.py [--fit]

The model has two parameters, `models.l2.DRIFT` and `models.l2.SHARED`. Every second figure of
`l2_figures.py` fits them; all others are tests. `--fit` tries other values and prints the error of
each on the figures that fit, then that of the best on the others, with SHARED and without.
Everything here is modelled: no GPU of AMD has run it. `l2_figures.py` names the sources.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from unittest import mock

from l2_figures import FIGURES, FIT, HEAD_SWIZZLED, TEST, Figure

from tftune.kernels.flash_prefill import timeline as prefill
from tftune.models import l2

DRIFTS = tuple(number / 200 for number in range(2, 25))
SHARES = (0.0, 0.5, 1.0, 1.5, 2.0)
TIE = 0.06
"""Published speeds and hit rates that are nearer than this are not ranked."""
MARGIN = 0.01
"""Modelled ones that are nearer than this rank nothing."""


def errors(figures: Sequence[Figure]) -> list[float]:
    """Modelled less published."""
    return [figure.modelled() - figure.published for figure in figures]


def root_mean_square(values: Sequence[float]) -> float:
    return float((sum(value * value for value in values) / len(values)) ** 0.5)


def with_drift(drift: float, shared: float, call: Callable[[], float]) -> float:
    """The call's answer with other parameters."""
    prefill._played.cache_clear()
    with mock.patch.multiple(l2, DRIFT=drift, SHARED=shared):
        found = call()
    prefill._played.cache_clear()
    return found


def ranked(figures: Sequence[Figure]) -> tuple[int, int, list[str]]:
    """Pairs of orders of one shape and kind that were published apart: how many the model puts in
    the same order, out of how many, and a sentence for each other one. Swizzled head-first has
    speed 1."""
    same, pairs, wrong = 0, 0, []
    groups: dict[tuple[object, ...], dict[str, tuple[float, float]]] = {}
    for figure in figures:
        group = groups.setdefault((figure.name, figure.kind), {})
        group[figure.mapping] = figure.published, figure.modelled()
        if figure.kind == "speed":
            group[HEAD_SWIZZLED] = 1.0, 1.0
    for (name, kind), group in groups.items():
        for (one, first), (other, second) in combinations(group.items(), 2):
            published, modelled = (a - b for a, b in zip(first, second, strict=True))
            if abs(published) < TIE - 1e-9:
                continue
            pairs += 1
            if modelled * published > 0 and abs(modelled) >= MARGIN:
                same += 1
            else:
                wrong.append(f"{name}, {kind}: {one} and {other}")
    return same, pairs, wrong


def table() -> Iterator[str]:
    """Markdown: each figure, published and modelled."""
    yield "| shape | of | order | published | modelled | error | used to |"
    yield "|---|---|---|---|---|---|---|"
    for place, figure in enumerate(FIGURES):
        told = f"{figure.low:.2f}" + (f" to {figure.high:.2f}" if figure.high > figure.low else "")
        found = figure.modelled()
        yield (
            f"| {figure.name} | {figure.kind} | `{figure.mapping}` | {told} | {found:.2f} | "
            f"{found - figure.published:+.2f} | {'test' if place % 2 else 'fit'} |"
        )


def result() -> str:
    fitted, tested = errors(FIT), errors(TEST)
    same, pairs, _ = ranked(FIGURES)
    return (
        f"RESULT l2 drift={l2.DRIFT} shared={l2.SHARED} fit_rms={root_mean_square(fitted):.3f} "
        f"test_rms={root_mean_square(tested):.3f} worst={max(map(abs, tested)):.2f} "
        f"ranked_right={same}/{pairs}"
    )


def fit() -> Iterator[str]:
    """A line for each pair of values, then the best with any SHARED, and with none."""
    found = {
        (shared, drift): with_drift(drift, shared, lambda: root_mean_square(errors(FIT)))
        for shared in SHARES
        for drift in DRIFTS
    }
    for (shared, drift), error in found.items():
        yield f"shared {shared:.1f} drift {drift:.3f}: root mean square error {error:.4f}"
    for shares in (SHARES, SHARES[:1]):
        shared, drift = min((key for key in found if key[0] in shares), key=found.__getitem__)
        held_out = with_drift(drift, shared, lambda: root_mean_square(errors(TEST)))
        yield (
            f"best: shared {shared:.1f} drift {drift:.3f}: {found[shared, drift]:.4f}, "
            f"on the others {held_out:.4f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fit", action="store_true", help="try other values of both parameters")
    if parser.parse_args().fit:
        print(*fit(), sep="\n")
        return
    print("\n".join(table()))
    _, _, wrong = ranked(FIGURES)
    print(*(f"not ranked as published: {text}" for text in wrong), sep="\n")
    print(result())


if __name__ == "__main__":
    main()
