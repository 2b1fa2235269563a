"""Searches that a test starts as a process of its own, and kills: `python killed.py model|ranks
FOLDER`. The same command resumes.

Each notes what it measured in a file beside the database, which is how the test knows what must be,
or may be, stored. What ranks do not need is imported late: they import this file again.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tftune.db.target import Target
from tftune.db.trial import MODES, Outcome, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.chips import H200, Chip
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.tuner.bench.benches import ModelBench
from tftune.tuner.bench.faults import Drill
from tftune.tuner.bench.node import NodeBench
from tftune.tuner.bench.rounds import Rounds

if TYPE_CHECKING:
    from tftune.tuner.search.search import Best

Key = tuple[str, str, str, str]
SHAPES: dict[str, tuple[AllGatherGemm, ...]] = {
    "model": tuple(AllGatherGemm(m=m, n=3584, k=8192, world=8) for m in (1, 2, 4)),
    "ranks": (AllGatherGemm(8, 40, 256, 2, shard="m"),),
}
EMULATED = Target.of(replace(H200, name="emulated", units=16), 2)
FAULTS = Drill.parse("crash=0.1,wrong=0.1")


def predicted(shape: Shape, config: Config, mode: str, chip: Chip) -> float:
    values = [value if isinstance(value, int) else 0 for _, value in config.knobs]
    knobs = sum(place * value for place, value in enumerate(values))
    us = 20.0 if config.variant == "bsp" else 10 + knobs % 97 / 5
    return 2 * us if mode == "eager" else us


class Notes:
    """Notes each finished measurement, alone or compared with others, and what the search says is
    committed."""

    def __init__(self, folder: Path) -> None:
        self.file = os.open(folder / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(self, word: str, key: Key) -> None:
        os.write(self.file, ("\t".join((word, *key)) + "\n").encode())

    def start(self, total: int | None, stage: str = "") -> None: ...

    def doing(self, what: str) -> None: ...

    def advance(self, trial: Trial) -> None:
        self.note("committed", key_of(trial))

    def finish(self) -> None: ...


class SlowBench(ModelBench):
    """Long enough on each trial to be killed in it."""

    def measure(self, *asked: Any, **options: Any) -> Outcome:
        time.sleep(0.01)
        return super().measure(*asked, **options)


def bench_of(kind: str) -> SlowBench | NodeBench:
    """`model`: no children, quick trials. `ranks`: emulated ranks, some configs faulty, so that
    recoveries are interrupted, too."""
    if kind == "model":
        return SlowBench(Target.parse("mi300x8"), predicted)
    return NodeBench(EMULATED, 1 << 16, emulated=True, rounds=Rounds(1, 2, 2), inject=FAULTS.fault)


def key_of(trial: Trial) -> Key:
    return str(trial.shape), str(trial.config), trial.mode, trial.stage


def resumable(kind: str, folder: Path) -> list[Best]:
    """The command that is killed, and started again as it is."""
    from tftune.db.store import Store
    from tftune.tuner.search.search import search

    bench, notes = bench_of(kind), Notes(folder)
    measure, compare = bench.measure, bench.compare

    def noted(
        shape: Shape, config: Config, mode: str, baseline: Config | None, *, stage: str = "search"
    ) -> Outcome:
        outcome = measure(shape, config, mode, baseline, stage=stage)
        if compare is None or stage == "search":  # else it is a part of a comparison
            notes.note("measured", (str(shape), str(config), mode, stage))
        return outcome

    def noted_together(
        shape: Shape, configs: Sequence[Config], mode: str, baseline: Config
    ) -> list[Outcome]:
        assert compare is not None
        outcomes = compare(shape, configs, mode, baseline)
        for config in (baseline, *configs):
            notes.note("compared", (str(shape), str(config), mode, "final"))
        return outcomes

    bench.measure = noted  # type: ignore[method-assign]
    if compare is not None:
        bench.compare = noted_together  # type: ignore[method-assign]
    with Store.open(folder / "a.db") as store:
        try:
            return search(
                "all_gather_gemm", SHAPES[kind], MODES, bench, store, effort="quick", progress=notes
            )
        finally:
            bench.close()


if __name__ == "__main__":
    resumable(sys.argv[1], Path(sys.argv[2]))
