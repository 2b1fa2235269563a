"""What a search tries before its sampler is asked: warm configs fitted and ordered, and variants
that cannot win left at one trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log

import pytest
from fake_bench import OPERATION, SMALL, SPACE, TARGET, FakeBench, plain, run, time_us

from tftune.db.store import Store
from tftune.db.trial import Measurement, Outcome, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.chips import H200
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.tuner.search.feasible import Feasible
from tftune.tuner.search.opening import AS_THEY_WON, BY_MODEL, Knowledge, Opening, likeliest
from tftune.tuner.search.recipes import fitted
from tftune.tuner.search.session import Rows

pytestmark = pytest.mark.usefixtures("tiny")
PUSH, PULL, STAGED = (
    SPACE.complete(Config(variant, block_m=16, block_n=64, num_warps=4))
    for variant in ("push", "pull", "staged")
)
PLACE = (SMALL, "graph")


def opening(store: Store, **known: object) -> Opening:
    rows = Rows(OPERATION, FakeBench(), store)
    return Opening(rows, tuple(SPACE.variants), Knowledge(**known), 0)  # type: ignore[arg-type]


def row(config: Config, speedup: float, shape: Shape = SMALL, **more: str) -> Trial:
    outcome = Measurement((10.0,), (10.0 * speedup,))
    found = Trial(shape, config, "graph", TARGET.name, "node", "r", "old", outcome, "final")
    return replace(found, **more)  # type: ignore[arg-type]


def test_an_artifacts_configs_are_tried_without_a_row_at_hand(store: Store) -> None:
    bench = FakeBench()
    known = Knowledge(shipped=lambda shape, mode: [PULL, PUSH] if mode == "graph" else [])
    run(store, bench, modes=("graph",), knowledge=known)
    assert bench.of("search")[5:7] == [PULL, PUSH], (
        "right after BSP and the defaults, in the artifact's order"
    )


def test_a_config_of_another_size_is_fitted_before_it_is_tried(store: Store) -> None:
    """SMALL has one row: a group of 8 row tiles is impossible there."""
    large = Config("push", **dict(PUSH.knobs) | {"group_m": 8})
    found = opening(store, shipped=lambda shape, mode: [large]).warm(PLACE)
    assert found and large not in found and found[0] == PUSH


def test_rows_of_another_world_and_layout_seed_every_search(store: Store) -> None:
    elsewhere = AllGatherGemm(4, 3584, 8192, 2, "bf16")
    former = (row(PULL, 2.0, elsewhere, target="h200x2"),)
    bench = FakeBench()
    run(store, bench, modes=("graph",), knowledge=Knowledge(former=former))
    assert bench.of("search")[5] == PULL


def test_the_first_come_as_they_won_and_of_the_others_the_models_best(store: Store) -> None:
    given = [
        Config("push", **dict(PUSH.knobs) | {"block_n": n, "num_stages": s})
        for n in (64, 32, 128)
        for s in (2, 3, 4, 5)
    ]
    found = opening(store, shipped=lambda shape, mode: given, predict=time_us).warm(PLACE)
    assert found[:AS_THEY_WON] == given[:AS_THEY_WON] and len(found) <= AS_THEY_WON + BY_MODEL
    rest = [time_us(SMALL, config, "graph") for config in found[AS_THEY_WON:]]
    every = {config for each in given for config in fitted(SPACE, SMALL, TARGET.chip, each)}
    others = every - set(found[:AS_THEY_WON])
    assert rest == sorted(rest)
    assert rest[0] == min(time_us(SMALL, config, "graph") for config in others)


def test_only_variants_that_came_near_the_winner_are_carried_over(store: Store) -> None:
    former = (row(PUSH, 2.0), row(PULL, 1.9), row(STAGED, 1.5))
    warm = opening(store, former=former).warm(PLACE)
    assert {config.variant for config in warm} == {"push", "pull"}


def slow_pull(
    shape: Shape, config: Config, mode: str, baseline: Config | None, stage: str
) -> Outcome:
    """As the model says, but pull takes half the time: the model is wrong about it."""
    outcome = plain(shape, config, mode, baseline, stage)
    assert isinstance(outcome, Measurement)
    times = tuple(us / (2 if config.variant == "pull" else 1) for us in outcome.samples_us)
    return replace(outcome, samples_us=times)


def test_what_was_measured_at_the_place_decides_who_contends(store: Store) -> None:
    bench = FakeBench(slow_pull)
    run(store, bench, modes=("graph",), knowledge=Knowledge(time_us))
    tried = {config.variant for config in bench.of("search")[5:]}
    assert tried == {"pull"}, (
        "its default was twice as fast as the model said, so its others are expected to be, too"
    )


def test_without_a_model_every_variant_contends(store: Store) -> None:
    feasible = Feasible(SPACE, [PUSH, PULL, STAGED])
    assert opening(store).contenders(PLACE, feasible) == set(SPACE.variants)


def test_what_won_nearby_contends_whatever_the_model_says(store: Store) -> None:
    run(store, FakeBench(), modes=("graph",), budget_s=0.0)
    feasible = Feasible(SPACE, SPACE.configs(SMALL, TARGET.chip))
    assert opening(store, predict=time_us).contenders(PLACE, feasible) == {"bsp", "push"}
    known = opening(store, predict=time_us, former=(row(PULL, 2.0, replace(SMALL, n=1024)),))
    assert known.contenders(PLACE, feasible) == {"bsp", "push", "pull"}


def test_a_descent_takes_in_what_the_model_prefers_to_the_whole_pool() -> None:
    """The best of a pool of 40, by a hint that knows the best config, is far from what the way down
    finds."""
    space, shape = operation("all_gather_gemm").space, AllGatherGemm(384, 3584, 8192, 2)
    feasible = Feasible.of(space, shape, H200, ("push",), 40)

    def hint(shape: Shape, config: Config, mode: str, chip: object) -> float:
        wanted = dict(block_m=64, block_n=256, num_stages=4, comm_programs=32)
        wanted |= dict(order="group", loads="descriptor")
        return 10.0 + sum(config[name] != value for name, value in wanted.items())

    class Nowhere:
        op, bench = operation("all_gather_gemm"), FakeBench()

    Nowhere.bench.target = type(TARGET).parse("h200x2")
    found = Opening(Nowhere(), ("push",), Knowledge(hint), 0).descent((shape, "graph"), feasible)  # type: ignore[arg-type]
    assert min(hint(shape, config, "graph", None) for config in found) == 10.0
    assert min(hint(shape, config, "graph", None) for config in feasible.configs) > 10.0


def test_likeliest_are_the_best_of_each_variant_then_the_best_of_all() -> None:
    configs = [
        Config(variant, block_m=value)
        for variant in ("pull", "push")
        for value in (16, 32, 64, 128, 256)
    ]

    def hint(given: Sequence[Config]) -> list[float]:
        return [log(config["block_m"]) + 10 * (config.variant == "pull") for config in given]

    found = likeliest(configs, hint)
    assert found == [configs[5], configs[0], *configs[6:9]]
