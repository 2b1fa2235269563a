"""A search of a tenth of the space on a bench that answers from a function; conftest.py has the
effort and the store that go with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tftune.db.store import Store
from tftune.db.target import Target
from tftune.db.trial import Failure, Measurement, Outcome
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE as WHOLE
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config, Space
from tftune.tuner.bench.benches import Bench, Compare
from tftune.tuner.search.search import Best, search

TARGET = Target.parse("mi300x8")
KEPT = {
    "block_m": (16,),
    "block_n": (32, 64, 128),
    "rows_per_flag": (16, 128),
    "k_per_flag": (256, 1024),
}
SPACE = replace(
    WHOLE,
    variants={
        variant: tuple(
            replace(c, values=KEPT.get(c.name, c.values), default=KEPT.get(c.name, c.values)[0])
            for c in choices
        )
        for variant, choices in WHOLE.variants.items()
    },
)
OPERATION = replace(operation("all_gather_gemm"), space=SPACE)
SMALL, OTHER = (AllGatherGemm(m=m, n=3584, k=8192, world=8) for m in (1, 8))
FORMS = tuple(config for config in SPACE.defaults(SMALL, TARGET.chip) if config.variant == "bsp")
BOTH = ("graph", "eager")
Answer = Callable[[Shape, Config, str, Config | None, str], Outcome]


def time_us(shape: Shape, config: Config, mode: str, chip: Chip | None = None) -> float:
    """gather_copy is the stronger BSP; push with many stages and few programs win, and in eager
    mode pull."""
    if config.variant == "bsp":
        return 16.0 if config["form"] == "gather_copy" else 17.0
    best = "push" if mode == "graph" else "pull"
    return (
        7.0
        + 2 * (config.variant != best)
        + config["comm_programs"] / 16
        + 4 / config["num_stages"]
        + 0.001 * config["block_n"]
    )


def plain(shape: Shape, config: Config, mode: str, baseline: Config | None, stage: str) -> Outcome:
    us = time_us(shape, config, mode)
    return Measurement((us,) * 3, () if baseline is None else (time_us(shape, baseline, mode),) * 3)


class FakeBench(Bench):
    """Answers from a function, and remembers what it was asked."""

    name = "model"
    target = TARGET
    compare: Compare | None = None

    def __init__(self, answer: Answer = plain) -> None:
        self.answer = answer
        self.asked: list[tuple[Shape, Config, str, str]] = []
        self.baselines: list[Config | None] = []
        self.restarts: list[int] = []
        self.announced: set[tuple[Shape, Config]] = set()

    def ahead(self, shape: Shape, configs: Sequence[Config]) -> None:
        self.announced |= {(shape, config) for config in configs}

    def settle(self, timeout_s: float) -> None:
        assert timeout_s > 0 and not self.asked

    def measure(
        self,
        shape: Shape,
        config: Config,
        mode: str,
        baseline: Config | None,
        *,
        stage: str = "search",
    ) -> Outcome:
        self.asked.append((shape, config, mode, stage))
        self.baselines.append(baseline)
        return self.answer(shape, config, mode, baseline, stage)

    def restart(self) -> None:
        self.restarts.append(len(self.asked))

    def of(self, stage: str, shape: Shape = SMALL, mode: str = "graph") -> list[Config]:
        return [config for s, config, m, g in self.asked if (s, m, g) == (shape, mode, stage)]


def use(monkeypatch: pytest.MonkeyPatch, space: Space) -> None:
    monkeypatch.setattr(
        "tftune.tuner.search.search.operation", lambda name: replace(OPERATION, space=space)
    )


def run(
    store: Store,
    bench: Bench,
    shapes: tuple[Shape, ...] = (SMALL,),
    modes: tuple[str, ...] = BOTH,
    **more: object,
) -> list[Best]:
    return search(
        "all_gather_gemm",
        shapes,
        modes,
        bench,
        store,
        **{"effort": "tiny", "sampler": "random"} | more,
    )  # type: ignore[arg-type]


class Stopped(FakeBench):
    """Ctrl-C comes while it measures what follows so many questions."""

    def __init__(self, moment: int) -> None:
        def stopping(*question: Any) -> Outcome:
            if len(self.asked) > moment:
                raise KeyboardInterrupt
            return plain(*question)

        super().__init__(stopping)


def failing(
    shape: Shape, config: Config, mode: str, baseline: Config | None, stage: str
) -> Outcome:
    """Three of ten configs fail, one of them by an exception that a bench should not raise."""
    digit = (
        config.variant != "bsp"
        and sum(value for _, value in config.knobs if isinstance(value, int)) // 16 % 10
    )
    if digit and digit < 3:
        return Failure("compile", "it did not compile")
    if digit == 3:
        raise RuntimeError("a bug of the bench")
    return plain(shape, config, mode, baseline, stage)
