"""What is tried at a shape by its sizes alone, and the second look at what came near BSP."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tftune.confirm import guesses, warm_up
from tftune.confirm.bench import Here, InPlace
from tftune.confirm.request import Request
from tftune.confirm.warm_up import Confirming
from tftune.db.evidence import BSP
from tftune.db.trial import Failure, Measurement, Outcome, Run
from tftune.kernels.core.chips import B200, CHIPS, H100, H100_NVL, with_lent_constants
from tftune.kernels.core.registry import operation
from tftune.kernels.core.revision import installed
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.bracket import Answers
from tftune.models.selector import Selector
from tftune.models.timeline.simulator import ordering, predict
from tftune.tuner.warm_up.order import Order

SHAPES = [
    operation(op).shape.parse(text)
    for op, text in (
        ("all_gather_gemm", "m=48,n=13952,k=16128,world=2,dtype=bf16,shard=m,b_layout=nk"),
        ("gemm_reduce_scatter", "m=4,n=11328,k=8832,world=2,dtype=bf16"),
        ("gemm_all_reduce", "m=10,n=12352,k=14592,world=2,dtype=bf16"),
        ("all_reduce", "m=436,n=3264,world=2,dtype=bf16"),
        ("flash_decode", "batch=3,q_heads=28,kv_heads=4,head_dim=128,kv_len=1024,world=2"),
        ("merge_attention", "batch=4,heads=64,head_dim=128,world=2"),
    )
]


class TestDefaults:
    @pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.op)
    def test_each_variant_s_best_by_a_relative_s_constants_stands_beside_its_default(
        self, shape: Shape
    ) -> None:
        space, found = operation(shape.op).space, list(guesses.defaults(shape, "graph", H100))
        sound = {space.complete(c) for c in space.defaults(shape, H100) if c.variant != BSP}
        best, plain = found[::2], found[1::2]
        assert set(plain) == sound and {c.variant for c in best} == {c.variant for c in sound}
        assert all(space.why_invalid(shape, config, H100) is None for config in found)
        order = ordering(H100, 2)
        assert order is not None
        times = [order(shape, config, "graph", H100) for config in best]
        assert times == sorted(times)
        assert all(
            us <= order(shape, config, "graph", H100)
            for us, own in zip(times, best, strict=True)
            for config in sound
            if config.variant == own.variant
        )

    def test_few_rows_of_a_wide_gemm_get_the_tile_that_fills_one_wave(self) -> None:
        """one_shot_ll with 128 columns took 67.6 us where the default of 64 took 92 (2x H100). With
        H100's own constants it is the best of its variant, behind the default in the list."""
        bests = list(guesses.defaults(SHAPES[2], "graph", H100))[::2]
        for proposed in (guesses.defaults(SHAPES[2], "graph", H100_NVL), bests):
            best = next(config for config in proposed if config.variant == "one_shot_ll")
            assert best["block_n"] == 128 and best["split_k"] == 1

    def test_a_chip_without_a_relative_gets_the_defaults(self) -> None:
        space = operation("all_reduce").space
        expected = [space.complete(c) for c in space.defaults(SHAPES[3], B200) if c.variant != BSP]
        assert list(guesses.defaults(SHAPES[3], "graph", B200)) == expected
        assert guesses.changes(SHAPES[3], "graph", expected[0], B200)

    @pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.op)
    def test_changes_are_possible_and_of_one_knob(self, shape: Shape) -> None:
        space = operation(shape.op).space
        config = next(guesses.defaults(shape, "graph", H100))
        found = guesses.changes(shape, "graph", config, H100)
        assert found and all(space.why_invalid(shape, each, H100) is None for each in found)
        assert {len(set(each.knobs) - set(config.knobs)) for each in found} == {1}
        assert guesses.changes(shape, "graph", config, None) == []


class TestLentConstants:
    def test_the_chip_s_own_constants_stay_and_no_time_of_it_is_modelled(self) -> None:
        lent = with_lent_constants(H100_NVL, 2)
        assert lent is not None
        assert (lent.name, lent.cache_bytes) == ("h100-nvl", H100_NVL.cache_bytes)
        assert dict(H100_NVL.assumed).items() <= dict(lent.assumed).items()
        assert lent.why_no_model(2) is None and H100_NVL.why_no_model(2) is not None

    @pytest.mark.parametrize("chip", CHIPS.values(), ids=lambda chip: chip.name)
    def test_only_a_chip_of_the_same_architecture_lends(self, chip: Any) -> None:
        known = [c for c in CHIPS.values() if c.arch == chip.arch and c.why_no_model(2) is None]
        assert (ordering(chip, 2) is None) == (not known)
        assert (ordering(chip, 2) is predict) == (chip.why_no_model(2) is None)


def timed(ratio: float, bsp_us: float = 20.0) -> Measurement:
    noise = tuple(part * bsp_us for part in (0.999, 1.0, 1.001) * 4)
    return Measurement(tuple(us / ratio for us in noise), noise)


class Bench(InPlace):
    """Ranks that answer at once: a config's speed-up is what `fast` says of it."""

    def __init__(self, fast: Any) -> None:
        self.fast, self.orders = fast, list[Order]()

    def measure(self, order: Order) -> Any:
        self.orders.append(order)
        form = order.forms[0]
        found: dict[Config, Outcome] = {form: Measurement(*[timed(1.0).bsp_samples_us] * 2)}
        return found | {config: self.fast(config) for config in order.candidates}, ()


class Ranks:
    """One rank that decides for all."""

    rank = 0

    def by_first(self, act: Any) -> Any:
        return act()


def confirmed(
    bench: Bench, tmp_path: Path, left_out: Any, top: int = 6, shapes: Any = (SHAPES[2],)
) -> Answers:
    here = Here("h100x2", {}, H100, H100.cache_bytes, "sm_90")
    run = Run("run", "h100x2", "node", {}, "2026-11-25T00:00:00+00:00", {})
    scene: Any = SimpleNamespace(ranks=Ranks(), here=here, rows=tmp_path / "rows.jsonl", run=run)
    request = Request(shapes, top, "graph", None, 0.4, 30.0, None, False)
    answers: Answers = {}
    Confirming(scene, request, Selector(), left_out, bench).fill(
        [[each] for each in shapes], answers
    )
    return answers


@pytest.fixture(autouse=True)
def nothing_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "_compile", lambda orders, here: None)


class TestSecondLook:
    def test_small_changes_of_the_fastest_are_tried_beside_it_and_serve(
        self, tmp_path: Path
    ) -> None:
        def fast(config: Config) -> Outcome:
            return timed(1.3 if config.knobs != bench.orders[0].candidates[0].knobs else 1.2)

        def slow_at_first(config: Config) -> Outcome:
            return timed(0.9) if len(bench.orders) == 1 else fast(config)

        bench = Bench(slow_at_first)
        answer = confirmed(bench, tmp_path, frozenset())[SHAPES[2]]
        first, second = bench.orders
        assert len(second.forms) == 1 and 1 < len(second.candidates) <= 7
        assert second.candidates[0] in first.candidates
        assert not set(second.candidates[1:]) & set(first.candidates)
        assert answer.config in second.candidates[1:] and round(answer.speedup or 0, 2) == 1.3

    def test_what_is_far_from_bsp_gets_no_second_look(self, tmp_path: Path) -> None:
        bench = Bench(lambda config: timed(0.6))
        assert confirmed(bench, tmp_path, frozenset())[SHAPES[2]].config.variant == BSP
        assert len(bench.orders) == 1

    def test_a_second_look_that_measured_nothing_leaves_the_first_answer(
        self, tmp_path: Path
    ) -> None:
        class Full(Bench):
            def measure(self, order: Order) -> Any:
                found, stored = super().measure(order)
                if len(self.orders) > 1:
                    found = dict.fromkeys(found, Failure("resources", "out of memory"))
                return found, stored

        answer = confirmed(Full(lambda config: timed(1.2)), tmp_path, frozenset())[SHAPES[2]]
        assert answer.source == "measured" and answer.config.variant != BSP

    def test_bsp_alone_stays_alone(self, tmp_path: Path) -> None:
        bench = Bench(lambda config: timed(1.2))
        confirmed(bench, tmp_path, frozenset(), top=0)
        assert [order.candidates for order in bench.orders] == [()]

    def test_what_the_first_look_was_sure_of_is_not_lost(self, tmp_path: Path) -> None:
        """The fastest median of the first look is not sure, another config is; in the second look
        nothing is sure, and that other one could not be timed again."""
        unsure = Measurement((16.0, 30.0) * 6, (20.0,) * 12)

        def fast(config: Config) -> Outcome:
            one, other, *_ = bench.orders[0].candidates
            if len(bench.orders) == 1:
                return {one: unsure, other: timed(1.2)}.get(config, timed(0.7))
            return Failure("resources", "out of memory") if config == other else timed(0.9)

        bench = Bench(fast)
        answer = confirmed(bench, tmp_path, frozenset())[SHAPES[2]]
        assert len(bench.orders) == 2 and answer.config == bench.orders[0].candidates[1]
        assert bench.orders[0].candidates[1] in bench.orders[1].candidates

    def test_what_failed_at_another_shape_takes_no_place(self, tmp_path: Path) -> None:
        bench = Bench(lambda config: timed(1.2))
        confirmed(bench, tmp_path, frozenset())
        change = bench.orders[1].candidates[1]
        again = Bench(lambda config: timed(1.2))
        key = "gemm_all_reduce", change, installed("gemm_all_reduce", change.variant)
        confirmed(again, tmp_path, frozenset({key}))
        assert change not in again.orders[1].candidates
        assert len(again.orders[1].candidates) == len(bench.orders[1].candidates)

    def test_what_failed_for_one_operation_is_still_tried_for_another(self, tmp_path: Path) -> None:
        """Two operations may have configs of the same name and knobs."""

        class Crashing(Bench):
            def measure(self, order: Order) -> Any:
                found, stored = super().measure(order)
                crash = Failure("crash", "ended")
                return found | dict.fromkeys(order.forms[1:], crash), stored

        reduce, gemm = SHAPES[3], SHAPES[2]
        again = replace(reduce, m=440)
        bench = Crashing(lambda config: timed(0.6))
        confirmed(bench, tmp_path, frozenset(), shapes=(reduce, gemm, again))
        asked = {order.shape: order.forms for order in bench.orders}
        assert len(asked[reduce]) > 1 and len(asked[gemm]) > 1
        assert set(asked[reduce]) & set(asked[gemm]) > {asked[gemm][0]}
        assert asked[again] == asked[reduce][:1], "it crashed at another shape of the operation"


def test_a_server_without_optuna_warms_up() -> None:
    """Optuna is of the extra `tune`."""
    code = "import sys; sys.modules['optuna'] = None; import tftune.confirm.warm_up"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
