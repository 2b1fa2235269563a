"""The contract of all_reduce, on emulated ranks: every variant is right, repeatable, the same on
every rank, and keeps its protocol; see tests/contract.py.

Sums are held to the bit against fp32 sums in the order of ranks, rounded once. Then mutants of each
variant's mechanisms must be refused.
"""

from __future__ import annotations

from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from contract import Call, Case, Ran, differing, repeated, runs, scenarios, with_known, wrong_calls
from mutant import in_place
from mutants_of_all_reduce import MUTANTS
from refusal import refuse

from tftune.kernels.all_reduce import EPSILON, AllReduce, reference
from tftune.kernels.all_reduce.space import SPACE
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.space import Config

OP = "all_reduce"
WORLDS = (3, *(pytest.param(world, marks=pytest.mark.thorough) for world in (1, 2, 4)))
FUSED = tuple(variant for variant in SPACE.variants if variant != "bsp")
CALLS = 3
"""Calls of each case, with other inputs each."""


def configured(variant: str, **knobs: int) -> Config:
    """A config with those of the knobs that the variant has, on 8 programs."""
    return with_known(SPACE, variant, programs=8, **knobs)


def cases(world: int) -> list[Case]:
    """Every variant on shapes whose rows are no power of two, whose last group of rows or last
    share is not full, and of which a program has several pieces."""
    shapes = {
        AllReduce(5, 48, world, "bf16"): dict(parts=2, rows_per_flag=2),
        AllReduce(5, 48, world, "bf16", "rms"): dict(parts=2, rows_per_flag=2),
        AllReduce(19, 24, world, "fp16"): dict(parts=1, rows_per_flag=1),
        AllReduce(1, 1040, world, "fp16", "rms"): dict(parts=2 if world < 3 else 1),
        AllReduce(13, 520, world, "bf16", "rms"): dict(parts=1, rows_per_flag=4),
    }
    wanted = [
        (shape, configured(variant, **knobs))
        for shape, knobs in shapes.items()
        for variant in SPACE.variants
    ]
    wanted += [(shape, configured("two_shot", **knobs, roles=2)) for shape, knobs in shapes.items()]
    several_turns = AllReduce(13, 520, world, "fp16", "rms")
    wanted.append((several_turns, configured("two_shot", roles=2)))
    several_blocks = AllReduce(45, 48, world, "bf16", "rms")
    wanted.append((several_blocks, configured("two_shot", rows_per_flag=16, parts=2, roles=2)))
    return [case for case in wanted if SPACE.why_invalid(*case) is None]


def alternating(world: int) -> list[Case]:
    """Without the library; each next call has another shape, config or variant."""
    shapes = AllReduce(4, 40, world), AllReduce(9, 16, world, "fp16", "rms")
    return [
        (shape, configured(variant, rows_per_flag=1 + number))
        for variant in FUSED
        for number, shape in enumerate(shapes)
    ] + [(shapes[1], configured("two_shot", rows_per_flag=2, roles=2))]


def contract(workspace: Workspace) -> dict[str, list[Call]]:
    turns = alternating(workspace.world) * 2
    return scenarios(workspace, repeated(cases(workspace.world), CALLS), turns, turns[::2])


ran = runs(contract, WORLDS)


def test_every_call_is_right(ran: Ran) -> None:
    assert wrong_calls(ran) == []


def test_every_variant_ran(ran: Ran) -> None:
    """On both kinds of result, and on every shape that it can run."""
    first = ran[0]["back to back"]
    kinds = {(call.config.variant, call.shape.norm) for call in first}
    assert kinds == {(variant, norm) for variant in SPACE.variants for norm in ("none", "rms")}
    roles = {call.shape.m for call in first if ("roles", 2) in call.config.knobs}
    assert len(ran) == 1 or roles >= {5, 13, 45}


def test_results_repeat_to_the_bit_and_are_the_same_on_every_rank(ran: Ran) -> None:
    assert differing(ran) == []
    for name in ran[0]:
        for calls in zip(*(found[name] for found in ran), strict=True):
            assert len({call.bits for call in calls}) == 1, calls[0]


def exact_bits(shape: AllReduce, seed: int) -> str:
    """The hash of the sum in fp32 in the order of ranks, rounded once."""
    import torch

    total = torch.zeros(shape.m, shape.n)
    for rank in range(shape.world):
        x, *_ = reference.make_inputs(shape, rank, seed)
        total += x.float()
    return sha256(total.to(x.dtype).view(torch.int16).numpy().tobytes()).hexdigest()


def test_sums_are_rounded_once(ran: Ran) -> None:
    """To the bit; the library rounds in between, and may differ."""
    calls = [
        call
        for call in ran[-1]["back to back"]
        if not call.shape.normed and call.config.variant != "bsp"
    ]
    assert {call.config.variant for call in calls} == set(FUSED)
    assert [call for call in calls if call.bits != exact_bits(call.shape, call.seed)] == []


EPS = (1e-6, 0.25, 1e-5)
"""The epsilons of calls of one shape and config in turn. The second changes every result by far
more than a rounding."""


def added_up(workspace: Workspace, config: Config, x: Any, *norm: Any) -> Any:
    """The operator's result by this config. `norm`: residual and weight."""
    from tftune.ops import operators

    operands = x, *(norm or (None, None))
    host = operators.ALL_REDUCE.host
    shape = host.shape_of(*operands, workspace)
    assert host.payload_bytes(shape) <= workspace.generation_bytes, "it would run BSP"
    return operators.ALL_REDUCE.call(operands, workspace, (), "graph", None, EPSILON, config=config)


def with_eps(workspace: Workspace) -> dict[str, list[float]]:
    """By variant, the errors in tolerances of calls for each eps, and of an eps against the
    reference of another one."""
    import tftune
    from tftune import ops
    from tftune.models.selection import Selection
    from tftune.tuner.bench.check import relative_error

    shape, found = AllReduce(3, 48, workspace.world, "bf16", "rms"), {}
    x, residual, weight = reference.make_inputs(shape, workspace.rank, 0)
    given = {"residual": residual, "weight": weight}
    operands = x, residual, weight, workspace.group
    exact = {eps: reference.reference(shape, *operands, eps=eps) for eps in EPS}
    for variant in SPACE.variants:
        config = configured(variant, parts=2, rows_per_flag=2)
        tftune.select_kernel = lambda *_, config=config: Selection(config, "fallback", "told")
        workspace.calls.clear()
        errors = []
        for eps in EPS:
            out = ops.all_reduce(x, workspace, **given, eps=eps)
            errors.append(relative_error(out, exact[eps]) / reference.tolerance(shape))
        other = relative_error(exact[EPS[0]], exact[EPS[1]]) / reference.tolerance(shape)
        found[variant] = [other, *errors]
    return found


def test_eps_is_that_of_the_call() -> None:
    for found in emulated.run(2, with_eps):
        assert found.keys() == SPACE.variants.keys()
        for other, *errors in found.values():
            assert len(errors) == len(EPS) and max(errors) < 1 < other


CANCELLING = AllReduce(6, 48, 3)
"""Ranks 0 and 1 have large numbers that cancel: only where they are added first is the small number
of rank 2 left whole."""
ORDERS = {
    "one_shot": (
        "all_reduce.one_shot:summed",
        "source_of(x_ptr, inbox, source,",
        "source_of(x_ptr, inbox, (rank + source) % WORLD,",
    ),
    "two_shot": (
        "all_reduce.two_shot:sum_share",
        "tl.cast(tl.where(source == rank, own, part), tl.float32)",
        "tl.cast(tl.where(source == 2, own * 0, part), tl.float32) * (source != rank)",
    ),
    **dict.fromkeys(
        ("one_shot_ll", "one_shot_lamport"),
        (
            "reduce:in_order",
            "for source in tl.static_range(1, WORLD):",
            "for source in (2, 1):",
        ),
    ),
}
"""Sums in another order, or not of all."""


def cancelled(workspace: Workspace, folder: Path, changed: bool) -> dict[str, tuple[bool, str]]:
    """By variant: whether the result is rank 2's x to the bit, and its digest."""
    import torch

    shared = torch.Generator().manual_seed(5)
    large = (torch.randn(6, 48, generator=shared) * 2**20).bfloat16()
    small = torch.randn(6, 48, generator=shared).bfloat16()
    x = (large, -large, small)[workspace.rank]
    found = {}
    for variant in FUSED:
        change = in_place(folder, variant, (ORDERS[variant],), OP) if changed else nullcontext()
        with change:
            out = added_up(workspace, configured(variant, parts=2, rows_per_flag=2), x)
        workspace.calls.clear()
        found[variant] = torch.equal(out, small), str(out.view(torch.int16).tolist())
    return found


def test_sums_in_another_order_are_refused(tmp_path: Path) -> None:
    ran = emulated.run(3, cancelled, tmp_path, False)
    assert all(right for found in ran for right, _ in found.values())
    ran = emulated.run(3, cancelled, tmp_path, True)
    for variant in FUSED:
        assert not all(found[variant][0] for found in ran), variant
    assert len({found["one_shot"][1] for found in ran}) > 1  # each rank starts with itself


def calls_of_a_trial(variant: str, world: int) -> dict[str, list[Case]]:
    """Three calls of a small shape, the last rank late, or two all together: one piece in one shot,
    a piece of each rank in two, so that one program sends all. Three of normalised rows, and three
    with programs that only normalise.
    And calls between which one_shot fills the inbox: two_shot alone needs no second generation,
    since who sends pieces has every sum of the call before."""
    small = AllReduce(world if variant == "two_shot" else 1, 32, world)
    rows, many = (AllReduce(m, 48, world, "bf16", "rms") for m in (6, 27))
    others = [(AllReduce(1, 512, world), configured("one_shot"))] * 2
    larger = [(AllReduce(12, 512, world), configured("one_shot", rows_per_flag=16))] * 2
    together: Case = small, configured(variant)
    roles: Case = many, configured(variant, rows_per_flag=2, roles=2)
    return {
        "small": [together] * 3,
        "together": [together] * 2,
        "rows": [(rows, configured(variant, parts=2))] * 3,
        "roles": [roles] * 3,
        "blocks": [(many, configured(variant, rows_per_flag=16, parts=2, roles=2))] * 3,
        "between others": [together, *others, together, others[0]],
        "roles between others": [roles, *larger, roles, larger[0]],
    }


@pytest.mark.thorough
def test_mutants_are_refused(tmp_path: Path) -> None:
    together = "together", "between others", "roles between others"
    refuse(tmp_path, MUTANTS, calls_of_a_trial, together)


def test_formula_is_that_of_engines() -> None:
    """On one rank, against the formula in float64: what is rounded, and where the result lies."""
    (found,) = emulated.run(1, against_float64)
    assert found == {"sum": True, "residual": True, "out": True}


def against_float64(workspace: Workspace) -> dict[str, Any]:
    import torch

    shape = AllReduce(7, 104, 1, norm="rms")
    x, residual, weight = reference.make_inputs(shape, 0, 3)
    total = added_up(workspace, configured("one_shot"), x)
    out, added = added_up(workspace, configured("one_shot"), x, residual, weight)
    wide = added.double()
    scaled = (wide * (wide.square().mean(-1, keepdim=True) + 1e-6).rsqrt()).bfloat16()
    return {
        "sum": torch.equal(total, x),
        "residual": torch.equal(added, x + residual),
        "out": torch.equal(out, scaled * weight),
    }
