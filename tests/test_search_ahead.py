"""A search off the grid in the layout that engines run, on a bench that compiles: what is tried,
and how long it waits for compilers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import heappop, heappush
from pathlib import Path

import pytest

from tftune.db.store import Store
from tftune.db.target import Target
from tftune.db.trial import Outcome
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.timeline.simulator import predict
from tftune.tuner.bench.benches import ModelBench
from tftune.tuner.search.opening import Knowledge
from tftune.tuner.search.search import search

TARGET = Target.parse("h200x2")
SHAPES = [AllGatherGemm(m, 3584, 8192, 2, "bf16", "m", "nk") for m in (384, 40)]
WORKERS, COMPILE_S, TRIAL_S = 24, 1.0, 0.07


class CompilingBench(ModelBench):
    """Answers from the model on a clock of its own: each new kernel takes a worker a second, a
    trial 70 ms and the wait for its kernel."""

    def __init__(self) -> None:
        super().__init__(TARGET, predict)
        self.now = self.waited = 0.0
        self.settled, self.order = 0.0, list[tuple[Shape, Config]]()
        self._workers = [0.0] * WORKERS
        self._done: dict[object, float] = {}

    def _key(self, shape: Shape, config: Config) -> object:
        """M is no constant of a kernel: shapes of one layer share it."""
        return (shape.to_dict()["n"], config)

    def _compiled(self, shape: Shape, config: Config) -> float:
        if config.variant.startswith("bsp"):
            return 0.0
        key = self._key(shape, config)
        if key not in self._done:
            self._done[key] = max(self.now, heappop(self._workers)) + COMPILE_S
            heappush(self._workers, self._done[key])
        return self._done[key]

    def ahead(self, shape: Shape, configs: Sequence[Config]) -> None:
        for config in configs:
            self._compiled(shape, config)

    def ready(self, shape: Shape, config: Config) -> bool:
        return self._compiled(shape, config) <= self.now

    def settle(self, timeout_s: float) -> None:
        self.settled = max(self._done.values(), default=0.0) - self.now
        self.now += self.settled

    def measure(
        self,
        shape: Shape,
        config: Config,
        mode: str,
        baseline: Config | None,
        *,
        stage: str = "search",
    ) -> Outcome:
        wait = max(0.0, self._compiled(shape, config) - self.now)
        self.waited += wait
        self.now += wait + TRIAL_S
        if stage == "search":
            self.order.append((shape, config))
        return super().measure(shape, config, mode, baseline, stage=stage)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> CompilingBench:
    bench = CompilingBench()
    with Store.open(tmp_path_factory.mktemp("rows") / "a.db", write=True) as store:
        search("all_gather_gemm", SHAPES, ["graph"], bench, store, knowledge=Knowledge(predict))
    return bench


def test_proposals_seldom_wait_for_a_compiler(searched: CompilingBench) -> None:
    """64 trials of each of two shapes take 9 s; one after the other 120 kernels would compile for
    120 s."""
    assert len(searched.order) == 128 and searched.settled == 0.0
    assert searched.waited < 0.08 * COMPILE_S * len(searched.order), "about as long as trials take"


CANNOT_WIN = {384: ("pull", "staged", "push_ce"), 40: ("pull", "push_ce")}
"""By M. At M = 40 the model puts the best of staged 13 % behind that of push, and whatever comes
within 15 % contends."""


def test_variants_that_cannot_win_have_one_trial(searched: CompilingBench) -> None:
    """Pull won 16 of 840 places and staged 12, none of them such a shape on two H200."""
    for shape in SHAPES:
        counts = Counter(config.variant for asked, config in searched.order if asked == shape)
        cannot_win = CANNOT_WIN[shape.m]
        assert {variant: counts[variant] for variant in cannot_win} == dict.fromkeys(cannot_win, 1)
        assert counts.total() == 64
        assert counts["push"] > 50 and counts["staged"] < 8


def test_a_contender_of_few_configs_leaves_its_trials_to_the_next_best(
    searched: CompilingBench,
) -> None:
    """At M = 384 the model lets bsp_chunked alone contend, of which four configs are possible."""
    shape = SHAPES[0]
    tried = {config for asked, config in searched.order if asked == shape}
    chunked = set(operation("all_gather_gemm").space.configs(shape, TARGET.chip, ("bsp_chunked",)))
    assert len(chunked) == 4 and chunked < tried and len(tried) == 64


def test_the_search_ends_with_what_the_model_prefers_to_a_large_pool(
    searched: CompilingBench,
) -> None:
    space = operation("all_gather_gemm").space
    from tftune.tuner.search.pools import pool

    for shape in SHAPES:
        best = min(
            predict(shape, config, "graph", TARGET.chip)
            for asked, config in searched.order
            if asked == shape
        )
        some = pool(space, shape, TARGET.chip, "push", 600)
        assert best <= min(predict(shape, config, "graph", TARGET.chip) for config in some)


def test_a_given_pool_is_compiled_before_the_first_trial(tmp_path: Path) -> None:
    bench = CompilingBench()
    with Store.open(tmp_path / "a.db", write=True) as store:
        search(
            "all_gather_gemm",
            SHAPES[:1],
            ["graph"],
            bench,
            store,
            effort="quick",
            pool=12,
            knowledge=Knowledge(predict),
        )
        tried = {trial.config for trial in store.trials(stage="search")}
    assert bench.settled > 0 == bench.waited
    few = {
        config for variant in ("push", "push_ce") for config in tried if config.variant == variant
    }
    assert len(few) > 10, "the pool, the defaults and what the model puts first of them"
