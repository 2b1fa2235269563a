"""Every sampler proposes each feasible config once at most; ours learns, from failures too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import exp, log
from statistics import median

import numpy as np
import optuna
import pytest

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.chips import MI300X
from tftune.kernels.core.space import Choice, Config, Rule, Space
from tftune.tuner.search.feasible import Feasible
from tftune.tuner.search.feasible_sampler import (
    FeasibleSampler,
    Hint,
    config_of,
    finished,
    parameters,
    suggest,
)
from tftune.tuner.search.samplers import SAMPLERS, Proposer, make_sampler

SHAPE = AllGatherGemm(m=64, n=3584, k=8192, world=8)
POWERS = (16, 32, 64, 128, 256, 512, 1024)
FEW = POWERS[:5]
SEEDS = 3, pytest.param(7, marks=pytest.mark.thorough)
"""Searches that a median is of."""


def toy(values: tuple[int, ...] = FEW) -> Space:
    """Two variants with knobs in common, a knob of words, and a rule that forbids about half."""
    tile = tuple(
        Choice(name, values, "a size", values[0]) for name in ("block_m", "block_n", "block_k")
    )
    order = Choice("order", ("row", "column"), "a word", "row")
    small = Rule(
        "the tile must be small",
        lambda shape, c, chip: c["block_m"] * c["block_n"] <= values[-1] ** 1.6,
        ("pull", "push"),
    )
    return Space(
        "toy",
        {"bsp": (), "pull": tile, "push": (*tile, order)},
        (small,),
        lambda shape, chip: (Config("bsp"),),
    )


def toy_time(config: Config) -> float:
    """A smooth bowl over the doublings of each size; push is better, its order matters."""
    if config.variant == "bsp":
        return 1.0
    best = {"block_m": 64, "block_n": 32, "block_k": 128}
    far = sum((POWERS.index(config[name]) - POWERS.index(at)) ** 2 for name, at in best.items())
    return 0.5 * exp(far / 8) + (
        0.2 if config.variant == "pull" else 0.1 * (config["order"] == "row")
    )


@pytest.fixture(autouse=True)
def quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def run(
    sampler: str, feasible: Feasible, count: int, seed: int = 0, hint: Hint | None = None
) -> list[Config]:
    proposer = Proposer(feasible, sampler, seed, hint)
    asked = []
    while len(asked) < count and (config := proposer.ask()):
        asked.append(config)
        proposer.tell(config, toy_time(config))
    return asked


PART = "bsp", "pull"


@pytest.fixture(
    scope="module",
    params=[PART, pytest.param((), marks=pytest.mark.thorough)],
    ids=["bsp and pull", "all"],
)
def variants(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Those whose configs are numbered; () is all, which takes some seconds."""
    found: tuple[str, ...] = request.param
    return found


@pytest.fixture(scope="module")
def whole(variants: tuple[str, ...]) -> Feasible:
    """Every possible config of a shape and of these variants."""
    return Feasible.of(SPACE, SHAPE, MI300X, variants)


def test_feasible_numbers_what_the_space_gives(whole: Feasible, variants: tuple[str, ...]) -> None:
    assert whole.configs == tuple(SPACE.configs(SHAPE, MI300X, variants))
    assert len(whole) == len(set(whole.configs))
    assert Config("push") not in whole and whole.configs[-1] in whole
    assert not variants or {config.variant for config in whole.configs} == {*variants}


def test_the_matrix_tells_every_config_apart_and_shares_knobs_between_variants() -> None:
    feasible = Feasible.of(toy(), SHAPE, MI300X)
    assert len({tuple(row) for row in feasible.matrix.tolist()}) == len(feasible)
    pull, push = (
        Config(v, block_m=16, block_n=32, block_k=64, **more)
        for v, more in (("pull", {}), ("push", {"order": "column"}))
    )
    assert feasible.matrix[feasible.index[pull]].tolist() == [0, 1, 0, 16, 32, 64, -1]
    assert feasible.matrix[feasible.index[push]].tolist() == [0, 0, 1, 16, 32, 64, 1]


@pytest.mark.parametrize("config", [Config("bsp"), Config("push", block_m=64, order="row")])
def test_parameters_are_the_config_and_back(config: Config) -> None:
    assert config_of(parameters(config)) == config


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_each_feasible_config_is_proposed_once_until_none_is_left(sampler: str) -> None:
    feasible = Feasible.of(toy((16, 32, 64)), SHAPE, MI300X)
    assert 20 < len(feasible) < 81
    asked = run(sampler, feasible, count=1000)
    assert len(asked) == len(set(asked)) and set(asked) == set(feasible.configs)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_what_was_told_is_not_proposed(sampler: str) -> None:
    feasible = Feasible.of(toy(), SHAPE, MI300X)
    proposer = Proposer(feasible, sampler, seed=3)
    told = feasible.configs[::2]
    for place, config in enumerate(told):
        proposer.tell(config, None if place % 3 == 0 else toy_time(config))
    assert not {proposer.ask() for _ in range(20)} & set(told)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_no_ask_is_infeasible_and_the_same_seed_asks_the_same(
    sampler: str, whole: Feasible
) -> None:
    once = Proposer(whole, sampler, seed=5)
    again = Proposer(whole, sampler, seed=5)
    for number in range(30):
        config = once.ask()
        assert config is not None and config in whole and config == again.ask()
        for proposer in (once, again):
            proposer.tell(
                config,
                None
                if number % 4 == 0
                else 1 + config["block_n"] / 64
                if config.variant != "bsp"
                else 1.0,
            )
    assert len(once.study.trials) == 30


def test_exhaustive_goes_in_the_order_of_the_space() -> None:
    feasible = Feasible.of(toy(), SHAPE, MI300X)
    assert tuple(run("exhaustive", feasible, count=len(feasible))) == feasible.configs


def test_the_nearest_config_differs_in_the_fewest_knobs() -> None:
    feasible = Feasible.of(toy(), SHAPE, MI300X)
    wanted = Config("push", block_m=256, block_n=256, block_k=64, order="row")
    assert wanted not in feasible
    near = [
        feasible.configs[number] for number in feasible.nearest(wanted, np.arange(len(feasible)))
    ]
    assert near
    assert {sum(config[name] != value for name, value in wanted.knobs) for config in near} == {1}
    assert {config.variant for config in near} == {"push"}


def regrets(seeds: int, sampler: str, feasible: Feasible, hint: Hint | None = None) -> list[float]:
    optimum = min(map(toy_time, feasible.configs))
    return [
        min(map(toy_time, run(sampler, feasible, count=30, seed=seed, hint=hint))) / optimum
        for seed in range(seeds)
    ]


@cache
def smooth() -> Feasible:
    return Feasible.of(toy(POWERS), SHAPE, MI300X)


@cache
def of_random(seeds: int) -> float:
    """The median regret of random searches of it."""
    return median(regrets(seeds, "random", smooth()))


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize(("sampler", "by"), [("lfbo", 0.1), ("gp", 0.2), ("mixed", 0.2)])
def test_samplers_that_learn_beat_random_on_a_smooth_space(
    sampler: str, by: float, seeds: int
) -> None:
    learned = regrets(seeds, sampler, smooth())
    assert median(learned) < of_random(seeds) - by, learned


def good(configs: Sequence[Config]) -> list[float]:
    """Not the time, but in its order."""
    return [log(3 * toy_time(config) ** 2) for config in configs]


def bad(configs: Sequence[Config]) -> list[float]:
    """Says that the largest tiles are the best, which is wrong."""
    return [-log(config["block_n"]) if config.variant != "bsp" else 0.0 for config in configs]


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("sampler", ["lfbo", "gp", "mixed"])
def test_a_good_hint_saves_evaluations_and_a_bad_one_does_not_stop_it(
    sampler: str, seeds: int
) -> None:
    assert max(regrets(seeds, sampler, smooth(), good)) == 1
    assert median(regrets(seeds, sampler, smooth(), bad)) < of_random(seeds) - 0.1


def test_with_a_hint_the_process_needs_one_measured_config() -> None:
    feasible = Feasible.of(toy(POWERS), SHAPE, MI300X)
    proposer = Proposer(feasible, "gp", seed=0, hint=good)
    first = feasible.configs[100]
    proposer.tell(first, toy_time(first))
    config = proposer.ask()
    assert config is not None
    assert toy_time(config) < 1.2 * min(map(toy_time, feasible.configs)) < toy_time(first)


def test_what_is_compiled_is_preferred_among_the_first_and_the_others_are_announced() -> None:
    feasible, announced = Feasible.of(toy(POWERS), SHAPE, MI300X), list[Config]()
    proposer, plain = (Proposer(feasible, "gp", seed=0, hint=good) for _ in range(2))
    ranking = sorted(feasible.configs, key=toy_time)
    for each in (proposer, plain):
        each.tell(ranking[300], toy_time(ranking[300]))
    first = plain.ask()
    proposer.look_ahead(lambda config: config != first, announced.extend)
    assert proposer.ask() != first == announced[0] and len(announced) == FeasibleSampler.AHEAD
    nothing_ready = Proposer(feasible, "gp", seed=0, hint=good)
    nothing_ready.tell(ranking[300], toy_time(ranking[300]))
    nothing_ready.look_ahead(lambda config: False, lambda configs: None)
    assert nothing_ready.ask() == first, "where none is compiled the best one is waited for"


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_configs_taken_in_later_are_proposed_too(sampler: str) -> None:
    whole = Feasible.of(toy((16, 32, 64)), SHAPE, MI300X)
    proposer = Proposer(Feasible(whole.space, whole.configs[:10]), sampler, seed=1)
    asked = []
    while config := proposer.ask():
        asked.append(config)
        proposer.tell(config, toy_time(config))
        if len(asked) == 5:
            proposer.grow(whole.configs)
    assert len(asked) == len(set(asked)) and set(asked) == set(whole.configs)


@pytest.mark.parametrize("sampler", ["mixed", "lfbo", "gp", "tpe"])
def test_samplers_that_learn_avoid_what_fails(sampler: str) -> None:
    feasible = Feasible.of(toy(POWERS), SHAPE, MI300X)
    proposer = Proposer(feasible, sampler, seed=1)
    failing = [config for config in feasible.configs if config.variant == "pull"]
    failed = []
    for _ in range(60):
        config = proposer.ask()
        assert config is not None
        failed.append(config.variant == "pull")
        proposer.tell(config, None if config.variant == "pull" else toy_time(config))
    assert sum(failed[30:]) / 30 < 0.5 * len(failing) / len(feasible)


def test_our_samplers_work_under_plain_optuna_with_failed_trials() -> None:
    feasible = Feasible.of(toy(), SHAPE, MI300X)
    study = optuna.create_study(sampler=make_sampler("lfbo", feasible, 0))
    asked: list[Config] = []

    def objective(trial: optuna.Trial) -> float:
        asked.append(suggest(trial, feasible.space))
        if len(asked) % 3 == 0:
            raise RuntimeError("a failing trial")
        return toy_time(asked[-1])

    study.add_trial(finished(feasible.space, feasible.configs[7], 0.9))
    study.optimize(objective, n_trials=30, catch=(RuntimeError,))
    assert len(set(asked)) == 30 and set(asked) <= set(feasible.configs) - {feasible.configs[7]}


def test_asking_for_more_than_there_is_is_a_sentence() -> None:
    feasible = Feasible.of(toy(), SHAPE, MI300X, ("bsp",))
    study = optuna.create_study(sampler=make_sampler("random", feasible, 0))
    study.tell(study.ask(), 1.0)
    with pytest.raises(ValueError, match="all 1 feasible configs were tried"):
        study.ask()


def test_an_unknown_sampler_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'annealing'.*mixed, lfbo, gp, tpe, random, exhaustive"):
        make_sampler("annealing", Feasible.of(toy(), SHAPE, MI300X), 0)
