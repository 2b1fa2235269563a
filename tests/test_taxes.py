"""Taxes: arms as values, their statistics on made times, arms on emulated ranks, rows and the
command."""

from __future__ import annotations

import html
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import Ran, Tftune, refused
from hypothesis import given
from hypothesis import strategies as st

from tftune.db.evidence import counting
from tftune.db.row_files import read_rows
from tftune.db.store import Store
from tftune.db.target import Target, detect
from tftune.db.trial import EVIDENCE, STAGES, Measurement, Trial
from tftune.kernels.comm import emulated
from tftune.kernels.core.chips import H200, MI300X
from tftune.kernels.core.registry import operation
from tftune.kernels.core.revision import installed
from tftune.kernels.core.space import Config
from tftune.kernels.core.taxes import BSP, CLOCKED, FUSED, WAITS, Arm, Gap, arms, cube
from tftune.kernels.runtime import gemm_reduce
from tftune.kernels.runtime.compile import gpu_target
from tftune.models.dataset import load
from tftune.report import figures
from tftune.studies.taxes import bench as taxes
from tftune.studies.taxes.figure import Waterfall, section
from tftune.studies.taxes.job import case_of, measured, stored
from tftune.studies.taxes.rows import Case, splits
from tftune.studies.taxes.split import interaction, shapley, split, times_of
from tftune.tuner.bench.sandbox import Broken

ROOT = Path(__file__).resolve().parent.parent
TARGET = Target.parse("h200x2")
SIZES = {
    "all_gather_gemm": "m=32,n=64,k=64,world=2",
    "flash_decode": "batch=1,q_heads=4,kv_heads=2,head_dim=64,kv_len=32,world=2,dtype=bf16",
    "gemm_all_reduce": "m=16,n=32,k=64,world=2,dtype=fp16",
}
OPS = tuple(SIZES)
GAP = Gap(kernels=2, trips=1.25, peers=1)
STEPS = ("transpose", "gather", "gemm")
KERNEL_US, TRIP_US, WAIT_US, FUSED_US = 1.5, 4.0, 7.0, 30.0
PAID_US = {"launch": 2 * KERNEL_US, "wait": WAIT_US, "memory": 1.25 * TRIP_US}
SUM_US = sum(PAID_US.values())


def case(op: str, world: int = 2) -> Case:
    shape: Any = operation(op).shape.parse(SIZES[op].replace("world=2", f"world={world}"))
    return case_of(shape, (), TARGET, None)


def additive(arm: Arm, more_us: float = 0.0) -> float:
    """The time of an arm on a bench whose taxes only add up; `more_us` where all meet."""
    if arm == BSP:
        return FUSED_US + SUM_US
    if arm.base == "bsp":
        return FUSED_US + SUM_US + max(arm.late, 0) - (5 if arm.without else 0)
    waits = arm.waits == "all"
    meet = more_us if waits and arm.trips and arm.kernels > 1 else 0.0
    late = 0.5 * max(arm.late, 0)
    return FUSED_US + arm.kernels * KERNEL_US + arm.trips * TRIP_US + waits * WAIT_US + late + meet


def made(gap: Gap = GAP, rounds: int = 41, noise: float = 0.0, **more: float) -> dict[Arm, Any]:
    """Times of every arm. A round's noise is common to its arms, as where a clock drops."""
    drawn = random.Random(3)
    common = [drawn.uniform(0, noise) for _ in range(rounds)]
    return {arm: [additive(arm, **more) + us for us in common] for arm in arms(gap, STEPS, False)}


# Arms.


def test_an_arm_reads_back_and_is_written_in_one_way() -> None:
    every = arms(GAP, STEPS, clocks=True)
    assert [Arm.parse(str(arm)) for arm in every] == list(every) and len(set(every)) == len(every)
    assert every[:2] == (BSP, FUSED) and CLOCKED in every and CLOCKED not in arms(GAP, STEPS, False)
    for text in ("fused,late=20,kernels=1", "fused,kernels=0", "fused,kernels=01", "push", ""):
        with pytest.raises(ValueError, match=r"is written|not of"):
            Arm.parse(text)


@pytest.mark.parametrize(
    ("arm", "words"),
    [
        (dict(base="fused", waits="never"), "not one of tile, all, clocked"),
        (dict(base="bsp", waits="all"), "no kernel of ours"),
        (dict(base="fused", without="gemm"), "only BSP"),
        (dict(base="fused", trips=1.0), "need a kernel"),
        (dict(base="fused", kernels=-1), "cannot be negative"),
        (dict(base="fused", kernels=1, trips=float("nan")), "cannot be negative"),
    ],
)
def test_an_arm_that_cannot_be_is_refused(arm: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Arm(**arm)


def test_of_the_cube_no_factor_but_launch_adds_a_kernel() -> None:
    corners = cube(GAP)
    assert len(corners) == 8 and {len(paid) for paid in corners} == {0, 1, 2, 3}
    for paid, arm in corners.items():
        assert arm.kernels == (3 if "launch" in paid else 1)
        assert (arm.trips == 1.25) == ("memory" in paid)
        assert (arm.waits == "all") == ("wait" in paid)


def test_one_rank_has_no_arm_that_waits_or_is_late() -> None:
    for op in OPS:
        alone = case(op, world=1)
        found = alone.arms(clocks=True)["graph"]
        assert not alone.gap.peers and "wait" not in alone.gap.factors
        assert all(arm.waits == "tile" and arm.late < 0 for arm in found)
        most = Arm("fused", kernels=1, trips=alone.gap.trips_added[-1])
        assert Arm("fused", kernels=4) in found and most in found


def test_a_slope_is_of_as_many_bytes_as_bsp_moves_more() -> None:
    for trips in (0.125, 1.25, 17.0, 1 / 3):
        added = Gap(kernels=1, trips=round(trips, 3), peers=1).trips_added
        assert added[0] == 0 and added[2] == pytest.approx(trips, abs=1e-3)
        assert added[4] == pytest.approx(2 * trips, abs=2e-3)
        for each in added:  # as a row spells it
            arm = Arm("fused", kernels=1, trips=each)
            assert Arm.parse(str(arm)) == arm
    assert Gap(kernels=0, trips=0.0, peers=0).trips_added == (0, 1, 2, 3, 4)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("world", [1, 2, 8])
def test_the_kernels_counted_are_those_that_are_compiled(op: str, world: int) -> None:
    """A library's call counts as one; all others are kernel sources of the host."""
    known, module = operation(op), operation(op).module("taxes")
    for shape in known.named_set(known.main_set, world)[:4]:
        form = known.space.fallbacks(shape, H200)[0]
        library = {"gather", "gemm", "copy", "transpose", "reduce", "collective"}
        steps = module.steps(shape, form)
        sources = known.module("host").kernel_sources
        assert len(sources(shape, form, H200)) == len(set(steps) - library)
        for config in known.space.defaults(shape, H200):
            if config.variant in module.FUSED:
                gap = module.gap(shape, form, config)
                assert gap.kernels == len(steps) - len(sources(shape, config, H200))
                assert gap.trips >= 0 and (
                    gap.trips > 0 or config.variant == "no_wait" or world == 1
                )


# Statistics.


def test_on_an_additive_bench_nothing_is_left_and_shares_are_what_was_added() -> None:
    found = split(made(noise=2.0), GAP)
    for name, us in PAID_US.items():
        for estimate in (found.taxes[name], found.shapley[name]):
            assert estimate.value == pytest.approx(us)
            assert estimate.low <= estimate.value <= estimate.high
    assert found.residual and abs(found.residual.value) < 1e-9
    assert found.interaction and abs(found.interaction.value) < 1e-9
    assert found.saved_us.value == pytest.approx(SUM_US)
    assert found.late["bsp"].value == pytest.approx(1.0)
    assert found.late["fused"].value == pytest.approx(0.5)
    without = {name: us.value for name, us in found.without_us.items()}
    assert without == pytest.approx(dict.fromkeys(STEPS, 5))


def test_a_planted_interaction_is_found_and_shared_equally() -> None:
    found = split(made(more_us=6.0), GAP)
    assert found.interaction and found.interaction.value == pytest.approx(6.0)
    shares = {name: share.value for name, share in found.shapley.items()}
    assert shares == pytest.approx({name: us + 2.0 for name, us in PAID_US.items()})


def test_what_the_taxes_do_not_explain_is_the_residual() -> None:
    times = made()
    times[BSP] = [us + 0.25 * SUM_US for us in times[BSP]]
    found = split(times, GAP)
    assert found.residual and found.residual.value == pytest.approx(0.2)


def test_where_bsp_is_not_surely_slower_there_is_no_residual() -> None:
    times = made()
    times[BSP] = [us + (1 if number % 2 else -1) for number, us in enumerate(times[FUSED])]
    assert split(times, GAP).residual is None


def test_one_rank_pays_for_launches_and_memory_alone() -> None:
    gap = Gap(kernels=1, trips=1.0, peers=0)
    times = {arm: [additive(arm)] * 5 for arm in arms(gap, ("attend", "merge"), False)}
    found = split(times, gap)
    assert found.taxes["wait"].value == 0 and set(found.shapley) == {"launch", "memory"}
    assert not found.late and found.taxes["launch"].value == pytest.approx(KERNEL_US)


def test_a_missing_arm_is_no_zero() -> None:
    times = made()
    del times[Arm("fused", kernels=3)]
    with pytest.raises(KeyError):
        split(times, GAP)


@given(st.lists(st.floats(1, 1e4), min_size=8, max_size=8))
def test_shapley_shares_add_up_and_do_not_depend_on_names(us: list[float]) -> None:
    sets = [frozenset(found) for size in range(4) for found in combinations("abc", size)]
    times = dict(zip(sets, us, strict=True))
    shares = shapley(times)
    assert sum(shares.values()) == pytest.approx(times[sets[7]] - times[sets[0]], abs=1e-6)
    swap = {"a": "b", "b": "a", "c": "c"}
    swapped = shapley({frozenset(swap[name] for name in key): us for key, us in times.items()})
    assert {swap[name]: share for name, share in swapped.items()} == pytest.approx(shares)
    flat = {key: 5.0 + 2.0 * len(key) for key in sets}
    assert shapley(flat) == pytest.approx(dict.fromkeys("abc", 2.0)) and interaction(flat) == 0


def test_shapley_needs_every_set() -> None:
    with pytest.raises(ValueError, match="3 sets of 2 factors; 4 are needed"):
        shapley({frozenset(): 1.0, frozenset("a"): 2.0, frozenset("ab"): 3.0})


# Arms on ranks.


SHORT = BSP, FUSED, Arm("fused", kernels=2, trips=1.25, waits="all", late=20)


def timed(mine: Case, asked: Mapping[str, Sequence[Arm]]) -> dict[str, dict[Arm, Measurement]]:
    """Two rounds of all these arms on emulated ranks, whose times say nothing."""
    found = taxes.measure(
        mine.shape, asked, mine.config, mine.form, TARGET, emulated=True, rounds=2
    )
    assert {mode: tuple(each) for mode, each in found.items()} == asked
    return found


@pytest.mark.parametrize("op", OPS)
def test_arms_run_on_two_ranks_and_the_whole_ones_are_right(op: str) -> None:
    """Each whole arm is checked, one rank being late."""
    mine = case(op)
    steps = operation(op).module("taxes").steps(mine.shape, mine.form)
    every = (*SHORT, *(Arm("bsp", without=step) for step in steps))
    found = timed(mine, {"graph": every, "eager": (BSP,)})["graph"]
    for arm, outcome in found.items():
        assert len(outcome.samples_us) == 2
        assert outcome.bsp_samples_us == found[BSP].samples_us
        assert (outcome.check_error is not None) == arm.whole


HEADS = "batch=3,q_heads=6,kv_heads=3,head_dim=64,kv_len=32,world=3,output=heads"
"""Each rank owns other heads."""


def both_ways(workspace: Any, op: str, text: str, configs: list[Config]) -> list[bool]:
    """Of each config: whether waiting for everything changes no bit of the result, in calls that
    use both generations."""
    import torch

    known = operation(op)
    shape, reference = known.shape.parse(text), known.module("reference")
    found = []
    for config in configs:
        prepare = known.module("host").prepare
        calls = [prepare(shape, config, workspace, waits=waits) for waits in WAITS]
        outs = []
        for number in range(2 * len(calls)):
            inputs = reference.make_inputs(shape, workspace.rank, number // len(calls))
            out = reference.make_output(shape).fill_(7.0)
            calls[number % len(calls)](*inputs, out)
            outs.append(out)
        same = (torch.equal(outs[n // 3 * 3], out) for n, out in enumerate(outs))
        found.append(all(same) and not torch.equal(outs[0], outs[3]))
    return found


@pytest.mark.parametrize(
    ("op", "text", "variants", "knobs"),
    [
        ("all_gather_gemm", "m=96,n=16,k=96,world=3", ("push",), {"rows_per_flag": 16}),
        pytest.param(
            "all_gather_gemm",
            "m=96,n=16,k=32,world=3,shard=m,b_layout=nk",
            ("push",),
            {},
            marks=pytest.mark.thorough,
        ),
        ("flash_decode", HEADS, ("persistent",), {}),
        pytest.param(
            "flash_decode",
            HEADS,
            ("fused_heads", "fused", "no_wait"),
            {},
            marks=pytest.mark.thorough,
        ),
        ("gemm_all_reduce", "m=48,n=64,k=96,world=3,dtype=fp16", ("one_shot", "two_shot"), {}),
    ],
)
def test_waiting_for_everything_ends_and_changes_no_result(
    op: str, text: str, variants: tuple[str, ...], knobs: dict[str, int]
) -> None:
    """Several flags of each source, rows sharded, heads that others own, both routes of a sum."""
    known = operation(op)
    shape: Any = known.shape.parse(text)
    configs = [
        Config(config.variant, **dict(config.knobs) | knobs)
        for config in known.space.defaults(shape, None)
        if config.variant in variants
    ]
    assert {config.variant for config in configs} == set(variants)
    found = emulated.run(3, both_ways, op, text, configs, timeout_s=300)
    assert found == [[True] * len(configs)] * 3


@pytest.mark.thorough
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("world", [1, 2])
def test_every_arm_runs(op: str, world: int) -> None:
    mine = case(op, world)
    timed(mine, mine.arms(clocks=False))


def test_a_wrong_arm_is_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ranks:
        def request(self, method: str, *_: object) -> Any:
            return [(0.5, 0.01), (0.0, 0.01)] if method == "check" else [None, None]

    with pytest.raises(ValueError, match=r"arm fused of .* is wrong .* 0.5 is above 0.01"):
        taxes._checked(Ranks(), case(OPS[0]).shape, taxes.Armed(FUSED, Config("push")))  # type: ignore[arg-type]
    left = taxes.Armed(Arm("bsp", without="gemm"), Config("bsp"))
    assert taxes._checked(Ranks(), case(OPS[0]).shape, left) is None  # type: ignore[arg-type]


def test_the_last_rank_is_late_and_no_other() -> None:
    def slept(rank: int, us: int) -> float:
        workspace = SimpleNamespace(rank=rank, world=2, arch="interpreter")
        found: float = taxes.delay(us, workspace).args[0]  # type: ignore[attr-defined]
        return found

    assert [slept(rank, us) for us in (0, 50) for rank in (0, 1)] == [0, 0, 0, 50e-6]


def test_additions_stand_around_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    for name in ("empty", "round_trip", "delay"):
        monkeypatch.setattr(
            taxes, name, lambda *given, name=name: lambda: done.append(f"{name} {given[0]}")
        )
    shape, arm = case("all_gather_gemm").shape, Arm("fused", kernels=3, trips=2.0, late=20)
    workspace: Any = "w"
    call = taxes.with_additions(shape, arm, lambda *_: done.append("call"), workspace)
    call(1, 2, 3)
    moved = 2 * 32 * 64 * 2
    assert done == ["delay 20", "call", f"round_trip {moved}", "empty w", "empty w"]


def test_a_step_that_bsp_has_not_is_refused() -> None:
    mine = case("gemm_all_reduce")
    armed = taxes.Armed(Arm("bsp", without="copy"), mine.form)
    with pytest.raises(ValueError, match="no step 'copy'; its steps are gemm, reduce"):
        taxes.base_plan(mine.shape, armed, SimpleNamespace(device="cpu", group=None))


# Compiled code.


def assembly(source: Any, arch: str) -> str:
    compiled = source.compile(gpu_target(arch))
    text: str = compiled.asm["ptx" if arch.startswith("sm") else "amdgcn"]
    return text


ARCHS = {"sm_90": (H200, r"%globaltimer"), "gfx942": (MI300X, r"s_memrealtime")}


@pytest.mark.parametrize("arch", ARCHS)
def test_what_is_added_compiles_and_a_delay_reads_the_clock(arch: str) -> None:
    backend = ARCHS[arch][0].can.backend
    late = assembly(taxes.late_source(backend), arch)
    assert len(re.findall(ARCHS[arch][1], late)) == 2
    for source in (taxes.empty_source(), taxes.round_trip_source(), taxes.take_waited_source()):
        assert not re.search(ARCHS[arch][1], assembly(source, arch))


def sources_of(op: str, waits: str, arch: str, variant: str | None = None) -> list[Any]:
    """The kernels of the default config that wait, on a real size."""
    chip, known = ARCHS[arch][0], operation(op)
    shapes = known.named_set(known.main_set, 8)
    shape = next(
        each
        for each in (shapes[::-1] if variant else shapes)
        if variant in (None, *(config.variant for config in known.space.defaults(each, chip)))
    )
    config = case_of(shape, (), Target.of(chip, 8), variant).config
    host, backend = known.module("host"), chip.can.backend
    if op == "flash_decode":
        return list(host._kernels(shape, config, backend, waits))
    if op == "gemm_all_reduce":
        return [gemm_reduce.source(known.space, shape, config, backend, waits=waits)]
    return [host.source(shape, config, backend, waits)]


def text_of(op: str, arch: str, variant: str | None = None) -> dict[str, str]:
    """The assembly of each kind of wait; only the traced one may read the clock."""
    text = {
        waits: "".join(assembly(source, arch) for source in sources_of(op, waits, arch, variant))
        for waits in WAITS
    }
    reads = {waits: len(re.findall(ARCHS[arch][1], code)) for waits, code in text.items()}
    assert reads["tile"] == reads["all"] == 0 and reads["clocked"] >= 2
    return text


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("op", OPS)
def test_a_traced_kernel_reads_the_clock_around_its_waits_and_no_other_does(
    op: str, arch: str
) -> None:
    """And what waits for all has one more loop that polls with an acquire."""
    text = text_of(op, arch)
    # What adds nothing becomes a load on CDNA, and an acquire there drops what caches hold.
    poll = r"atom\.\S*acquire\S*sys|atom\.\S*sys\S*acquire" if arch == "sm_90" else "buffer_inv"
    polls = {waits: len(re.findall(poll, code)) for waits, code in text.items()}
    assert polls["all"] > polls["tile"]
    first, *_, last = re.finditer(ARCHS[arch][1], text["clocked"])
    assert re.search(poll, text["clocked"][first.end() : last.start()])


@pytest.mark.thorough
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    ("op", "variant"),
    [(op, name) for op in OPS for name in operation(op).module("taxes").FUSED],
)
def test_every_variant_compiles_with_every_wait(op: str, variant: str, arch: str) -> None:
    """At the last size of the first set that has it."""
    assert len(set(text_of(op, arch, variant).values())) == 3


# On GPUs.


@pytest.mark.parametrize(
    "world", [pytest.param(count, marks=pytest.mark.gpu(count)) for count in (1, 2)]
)
@pytest.mark.parametrize("op", OPS)
def test_arms_on_gpus(op: str, world: int) -> None:
    """Every arm of a small shape, and what a delay and a launch must cost."""
    target, known = detect(), operation(op)
    shape = known.named_set(known.main_set, world)[2]
    mine = case_of(shape, (), target, None)
    found = taxes.measure(shape, mine.arms(clocks=True), mine.config, mine.form, target)
    assert all(len(outcome.samples_us) == 41 for outcome in found["graph"].values())
    told = split(times_of(found["graph"]), mine.gap)
    print(f"{shape}: {told}")
    assert 0 < told.per_kernel_us.value < 20
    if world > 1:
        assert told.clocked_us and 0.5 < told.late["bsp"].value < 1.5


# Rows and the command.


def fake(
    shape: Any, asked: Mapping[str, Sequence[Arm]], *_: object
) -> dict[str, dict[Arm, Measurement]]:
    """A bench whose taxes add up."""
    found = {}
    for mode, each in asked.items():
        samples = {
            arm: tuple(additive(arm) + 0.01 * n + (mode == "eager") for n in range(5))
            for arm in each
        }
        found[mode] = {arm: Measurement(us, samples[BSP], 0.001) for arm, us in samples.items()}
    return found


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A database with the taxes of one shape of each operation."""
    with Store.open(tmp_path / "t.db") as store:
        for op in OPS:
            measured(case(op), TARGET, store, fake)
    return tmp_path / "t.db"


def test_rows_are_measured_once_and_read_back(filled: Path, tmp_path: Path) -> None:
    def refuse(*_: object) -> Any:
        raise AssertionError("measured again")

    with Store.open(filled) as store:
        for op in OPS:
            found = measured(case(op), TARGET, store, refuse)
            assert found.keys() == {"graph", "eager"} and CLOCKED in found["graph"]
        assert store.check() == [] and store.trials() == []
        store.export_rows(tmp_path / "rows.jsonl")
        rows = store.trials(condition=None)
    assert read_rows(tmp_path / "rows.jsonl")[1] == rows
    with Store.open(tmp_path / "u.db") as store:
        assert store.import_rows(tmp_path / "rows.jsonl") == (len(rows), 0)
        assert stored(case(OPS[0]), TARGET, store).keys() == {"graph", "eager"}


def test_another_config_or_a_missing_arm_is_measured_again(filled: Path) -> None:
    mine = case(OPS[0])
    other = replace(mine, config=next(
        config for config in operation(OPS[0]).space.configs(mine.shape, None)
        if config.variant == "push" and config != mine.config
    ))  # fmt: skip
    with Store.open(filled) as store:
        assert stored(other, TARGET, store) == {}
        gone = "DELETE FROM tft_trials WHERE op = :op AND condition = :arm"
        store.execute(gone, {"op": OPS[0], "arm": "tax=fused,late=50"})
        assert stored(mine, TARGET, store).keys() == {"eager"}


def test_rows_reach_neither_training_nor_tables_nor_searches(filled: Path) -> None:
    """Not even where their stage is asked for beside them."""
    with Store.open(filled) as store:
        rows = store.trials(condition=None)
    assert {row.stage for row in rows} == {"tax"} and "tax" not in EVIDENCE
    assert counting(rows, []) == []
    mine = [row for row in rows if row.op == OPS[0] and row.mode == "graph"]
    for stages in (EVIDENCE, tuple(STAGES)):
        with pytest.raises(ValueError, match="no row of all_gather_gemm"):
            load(mine, OPS[0], TARGET.name, "graph", "node", stages)


def test_stage_and_condition_go_together() -> None:
    mine = case(OPS[0])
    row = Trial(
        mine.shape, mine.config, "graph", "h200x2", "node", "r", "r1",
        Measurement((1.0,), (1.0,)), "tax", "", "tax=fused",
    )  # fmt: skip
    assert Trial.from_dict(row.to_dict()) == row
    for wrong in (dict(stage="final"), dict(condition=""), dict(condition="tax=push")):
        with pytest.raises(ValueError, match=r"only those|not of"):
            replace(row, **wrong)  # type: ignore[arg-type]


def test_the_fastest_rows_name_what_is_held_against_each_other() -> None:
    mine = case(OPS[0])
    slow, fast = (
        Trial(mine.shape, with_stages(mine.config, stages), "graph", "h200x2", "node", "r",
              installed(OPS[0], "push"), Measurement((us,), (20.0,)), "final", str(us))
        for us, stages in ((9.0, 5), (5.0, 3))
    )  # fmt: skip
    chosen = case_of(mine.shape, [slow, fast], TARGET, None)
    assert chosen.config == fast.config and chosen.form == mine.form
    with pytest.raises(ValueError, match="isolated with push, not with pull"):
        case_of(mine.shape, [], TARGET, "pull")
    other: Any = operation("flash_prefill").named_set(operation("flash_prefill").main_set, 1)[0]
    with pytest.raises(ValueError, match="operations that have are all_gather_gemm, flash_decode"):
        case_of(other, [], TARGET, None)


def with_stages(config: Config, stages: int) -> Config:
    return Config(config.variant, **dict(config.knobs) | {"num_stages": stages})


@pytest.fixture
def study(tftune: Tftune, monkeypatch: pytest.MonkeyPatch) -> Tftune:
    """`study taxes` on a machine of two GPUs, whose taxes add up."""
    monkeypatch.setattr(taxes, "measure", fake)
    monkeypatch.setattr("tftune.pipeline.bench_factory.detect", lambda: TARGET)
    return lambda line: tftune(f"study taxes {line}")


def test_the_command_prints_a_table_and_a_result(study: Tftune) -> None:
    words = f"{OPS[0]} {SIZES[OPS[0]]}"
    code, out, _ = study(words)
    assert code == 0
    assert re.search(r"launch +3.00 +3.00 to 3.00 +\d+% +3.00 +-?\d", out)
    for said in (
        "residual: -20%",
        "explain what is saved does not hold here",
        "HBM bytes: not measured",
        "a rank late by 1 us costs bsp 1.00 us",
    ):
        assert said in out
    last = out.strip().splitlines()[-1]
    assert last.startswith("RESULT taxes op=all_gather_gemm target=h200x2 m=32 n=64 k=64 world=2")
    assert "launch_us=3.00 wait_us=7.00 memory_us=8.00 residual=-0.200" in last
    code, out, _ = study(f"{words} --json")
    (document,) = json.loads(out)
    assert code == 0 and document["measured"]["taxes"]["wait"]["value"] == 7.0
    table = (ROOT / "docs/taxes.md").read_text().partition("An estimate is")[2].partition("Rows")[0]
    fields = re.findall(r"^\| (`[^|]*`) \|", table, re.MULTILINE)
    listed = {name for cell in fields for name in re.findall(r"`(\w+)`", cell)} - {"field"}
    assert listed == set(document["measured"])
    assert document["modelled"]["times"] == "modelled"


def test_one_rank_says_that_nothing_is_exchanged(study: Tftune) -> None:
    ran: Ran = study(f"flash_decode {SIZES['flash_decode'].replace('world=2', 'world=1')}")
    assert ran.code == 0 and "one rank has nobody to exchange with" in ran.out


def test_a_budget_that_is_over_says_how_many_are_missing(
    study: Tftune, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter([0.0, 0.0, 99.0, 99.0])
    monkeypatch.setattr("tftune.studies.taxes.command.monotonic", lambda: next(ticks))
    ran = study(f"{OPS[0]} {SIZES[OPS[0]]};m=64,n=64,k=64,world=2 --budget 10s")
    assert ran.code == 2 and "1 of 2 shapes were measured" in ran.err


def test_ranks_that_break_are_one_sentence(study: Tftune, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Any:
        raise Broken("crashed", "rank 1 was killed")

    monkeypatch.setattr(taxes, "measure", broken)
    ran = study(f"{OPS[0]} {SIZES[OPS[0]]}")
    assert refused(ran, f"the arms of {SIZES[OPS[0]]} could not be measured: ", "rank 1 was killed")


def test_without_a_gpu_the_model_is_named(tftune: Tftune) -> None:
    assert "--on model" in tftune(f"study taxes {OPS[0]} {SIZES[OPS[0]]}").err


@pytest.mark.parametrize("op", OPS)
def test_the_modelled_split_adds_up_and_says_that_it_is_modelled(op: str, tftune: Tftune) -> None:
    known = operation(op)
    shape = known.named_set(known.main_set, 8)[0]
    found = case_of(shape, (), Target.parse("h200x8"), None).modelled(H200)
    assert found is not None
    assert sum(found.taxes.values()) + found.work_us == pytest.approx(found.bsp_us - found.fused_us)
    out = tftune(f"study taxes {op} {shape} --on model --target h200x8").out
    assert "MODELLED" in " ".join(out.split()) and "none was measured" in out


def test_splits_are_of_the_newest_whole_group(filled: Path) -> None:
    with Store.open(filled) as store:
        rows = store.trials(condition=None)
    found = splits(rows)
    assert [case.shape.op for case, _ in found] == list(OPS)
    assert all(each.taxes["launch"].value == pytest.approx(each.gap.kernels * KERNEL_US)
               for _, each in found)  # fmt: skip
    assert splits([row for row in rows if row.condition != "tax=fused,kernels=3"]) == []


# Figures.


def test_bars_lead_from_bsp_to_fused_whatever_the_signs() -> None:
    fall = Waterfall("measured", 50.0, 30.0, {"launch": 4.0, "wait": 22.0, "memory": -1.0})
    assert fall.steps["rest"] == pytest.approx(-5.0)
    assert fall.bars == [
        ("BSP", 0.0, 50.0), ("launch", 46.0, 4.0), ("wait", 24.0, 22.0), ("memory", 24.0, 1.0),
        ("rest", 25.0, 5.0), ("fused", 0.0, 30.0),
    ]  # fmt: skip
    assert fall.sentence() == (
        "measured: BSP 50.0 us, launch 4.0, wait 22.0, memory -1.0, rest -5.0, fused 30.0 us"
    )


def test_a_report_draws_them_beside_the_modelled_split(filled: Path) -> None:
    with Store.open(filled) as store:
        rows = [row for row in store.trials(condition=None) if row.op == OPS[0]]
    with figures.style():
        text = section(rows)
    assert "wait, measured" in text and "wait, modelled" in text and "residual -20%" in text
    assert "Taxes of m=32,n=64,k=64,world=2. measured: BSP 45.0 us" in text
    assert section([]) == section(rows[:5]) == ""


@pytest.mark.parametrize("op", OPS)
def test_the_figures_of_the_page_are_what_the_model_says(op: str) -> None:
    says = run_path(str(ROOT / "docs/taxes_figure.py"))["says"]
    text = (ROOT / f"docs/taxes-{op}.svg").read_text()
    said = text.partition("<dc:description>")[2].partition("</dc:description>")[0]
    known = says(op)
    assert json.loads(html.unescape(said)) == known, "run `python docs/taxes_figure.py`"
    page = (ROOT / "docs/taxes.md").read_text()
    assert f"![MODELLED: BSP {known['bsp_us']:.0f} us, fused {known['fused_us']:.0f} us" in page
    assert f"](taxes-{op}.svg)" in page
