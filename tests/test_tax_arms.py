"""The arms of taxes: as values, on emulated ranks and on GPUs, and what they are compiled to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from test_taxes import GAP, OPS, STEPS, TARGET, case

from tftune.db.target import Target, detect
from tftune.db.trial import Measurement
from tftune.kernels.comm import emulated
from tftune.kernels.core.chips import H200, MI300X
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.kernels.runtime import gemm_reduce
from tftune.kernels.runtime.compile import gpu_target
from tftune.studies.taxes import bench as taxes
from tftune.studies.taxes import operations
from tftune.studies.taxes.arms import BSP, CLOCKED, FUSED, WAITS, Arm, Gap, arms, cube
from tftune.studies.taxes.job import case_of
from tftune.studies.taxes.rows import Case
from tftune.studies.taxes.split import split, times_of


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
    known, module = operation(op), operations.of(op)
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


# On ranks.


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
    steps = operations.of(op).steps(mine.shape, mine.form)
    every = (*SHORT, *(Arm("bsp", without=step) for step in steps))
    found = timed(mine, {"graph": every, "eager": (BSP,)})["graph"]
    for arm, outcome in found.items():
        assert len(outcome.samples_us) == 2
        assert outcome.bsp_samples_us == found[BSP].samples_us
        assert (outcome.check_error is not None) == arm.whole


HEADS = "batch=3,q_heads=6,kv_heads=3,head_dim=64,kv_len=32,world=3,output=heads"
"""Each rank owns other heads."""


def both_ways(workspace: Any, op: str, text: str, configs: list[Config]) -> list[bool]:
    """For each config, whether waiting for everything changes no bit of the result, in calls that
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
    [(op, name) for op in OPS for name in operations.of(op).FUSED],
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
