"""The contract of flash_prefill, in Triton's interpreter: every mapping, block and mask is right,
and repeats to the bit, by pointers and by descriptors; faults are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from lone import lone
from mutant import Change, in_place

from tftune import ops
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.chips import MI300X
from tftune.kernels.core.space import Config
from tftune.kernels.device.dies import head_and_block
from tftune.kernels.flash_prefill import FlashPrefill, host, reference
from tftune.kernels.flash_prefill.mapping import MAPPINGS, place
from tftune.kernels.runtime.plan import Returning
from tftune.models.selection import Selection
from tftune.tuner.bench.check import relative_error

SMALL = {"block_m": 64, "block_n": 32, "num_warps": 4}
CASES = (
    (FlashPrefill(2, 4, 2, 64, 70, dtype="fp16"), SMALL),
    (FlashPrefill(2, 10, 5, 64, 70, dtype="fp16", causal="no"), SMALL),
    (FlashPrefill(1, 3, 3, 64, 1), SMALL),
    (FlashPrefill(3, 2, 1, 64, 33, causal="no"), {"block_m": 64, "block_n": 64}),
    (FlashPrefill(1, 3, 1, 128, 129, dtype="fp16"), {"block_m": 128, "block_n": 64}),
    (FlashPrefill(1, 2, 2, 64, 96, dtype="fp16"), SMALL),
    (FlashPrefill(1, 2, 2, 64, 64, dtype="fp16", causal="no"), SMALL),
    (FlashPrefill(1, 1, 1, 64, 70, dtype="fp16"), {"block_m": 64, "block_n": 128}),
)
"""Lengths that no block divides, one token, whole blocks; heads that dies do not divide. Mappings
take turns."""


def errors(workspace: Workspace, cases: Any) -> list[float]:
    """Errors, in tolerances, on a chip of eight dies; infinite where a second call differs."""
    from tftune.ops import operators

    workspace, found = replace(workspace, chip=MI300X), []
    for number, (shape, knobs) in enumerate(cases):
        inputs = reference.make_inputs(shape, 0, number)
        exact = reference.reference(shape, *inputs, None)
        config = Config("flash", **{"mapping": MAPPINGS[number % 4]} | knobs)
        outs = [reference.make_output(shape).fill_(torch.nan) for _ in range(2)]
        for out in outs:
            operators.FLASH_PREFILL.call(
                inputs, workspace, (shape.causal,), "graph", out, config=config
            )
        same = torch.equal(*outs)
        error = relative_error(outs[0], exact) / reference.tolerance(shape)
        found.append(error if same else float("inf"))
    return found


def test_every_mapping_is_right_for_every_mask_and_length() -> None:
    swizzled = tuple((CASES[0][0], SMALL | {"mapping": mapping}) for mapping in MAPPINGS[1:])
    (found,) = emulated.run(1, errors, (*CASES, *swizzled))
    assert len(found) == len(CASES) + 3 and max(found) < 1, found


def test_descriptors_load_the_same() -> None:
    """The end of one sequence is not the beginning of the next."""
    by_descriptor = SMALL | {"loads": "descriptor"}
    cases = [
        (FlashPrefill(2, 4, 2, 64, 70, dtype="fp16", causal=causal), by_descriptor)
        for causal in ("yes", "no")
    ]
    (found,) = emulated.run(1, errors, cases)
    assert max(found) < 1


@triton.jit
def deal(out_ptr, heads, blocks, MAPPING: tl.constexpr, DIES: tl.constexpr):  # type: ignore
    """A row for each program: what it is dealt."""
    number = tl.program_id(0)
    sequence, head, block = head_and_block(number, tl.num_programs(0), heads, blocks, MAPPING, DIES)
    tl.store(out_ptr + number * 3, sequence)
    tl.store(out_ptr + number * 3 + 1, head)
    tl.store(out_ptr + number * 3 + 2, block)


def dealt(workspace: Workspace, sizes: Any) -> list[Any]:
    """The (sequence, head, block) of each program on the device, for each mapping and size."""
    found = []
    for mapping in MAPPINGS:
        for batch, heads, blocks, dies in sizes:
            out = torch.full((batch * heads * blocks, 3), -1, dtype=torch.int32)
            deal[(len(out),)](out, heads, blocks, mapping, dies)
            found.append([tuple(row) for row in out.tolist()])
    return found


def test_the_device_deals_as_the_host_says() -> None:
    sizes = ((1, 8, 3, 8), (2, 12, 2, 8), (3, 3, 5, 8), (2, 5, 3, 2), (2, 6, 2, 1))
    (found,) = emulated.run(1, dealt, sizes)
    pairs = [(mapping, size) for mapping in MAPPINGS for size in sizes]
    for (mapping, (batch, heads, blocks, dies)), rows in zip(pairs, found, strict=True):
        count = batch * heads * blocks
        said = [place(n, batch, heads, blocks, mapping, dies) for n in range(count)]
        assert rows == said, (mapping, batch, heads, blocks, dies)


FAULTS: dict[str, tuple[Change, ...]] = {
    "a token does not see itself": (
        ("flash_prefill.flash", "rows[:, None] >= columns", "rows[:, None] > columns"),
    ),
    "what is past the end counts": (
        ("flash_prefill.flash", "else inside[None, :]", "else (columns >= 0)[None, :]"),
    ),
    "an older sum keeps its scale": (
        ("flash_prefill.flash", "total = total * shrink +", "total = total +"),
    ),
    "an older block keeps its scale": (
        ("flash_prefill.flash", "acc = acc * shrink[:, None]", "acc = acc"),
    ),
    "query heads take the KV heads in turn": (
        ("flash_prefill.flash", "head // (q_heads // kv_heads)", "head % kv_heads"),
    ),
    "a sequence reads the first one's keys": (
        ("flash_prefill.flash", "tl.cast(sequence, tl.int64) * tokens * stride +", "0 +"),
    ),
    "heads that are left over are left out": (
        ("dies", "head, block = own * DIES + rest // blocks", "head, block = rest // blocks"),
    ),
}


HARDEST = "what is past the end counts"


def faulty(workspace: Workspace, folder: Path, changes: tuple[Change, ...]) -> float:
    with in_place(folder, "flash", changes, "flash_prefill"):
        return max(errors(workspace, CASES[:2]))


@pytest.mark.parametrize(
    "fault",
    [HARDEST, *(pytest.param(f, marks=pytest.mark.thorough) for f in FAULTS if f != HARDEST)],
)
def test_a_fault_is_refused(tmp_path: Path, fault: str) -> None:
    (error,) = emulated.run(1, faulty, tmp_path, FAULTS[fault])
    assert not error < 1


def library(workspace: Workspace, shape: FlashPrefill) -> list[float]:
    """Errors of the library's form: with an output, without one, and what is timed, which leaves
    the output as it was."""
    inputs = reference.make_inputs(shape, 0, 0)
    exact, config = reference.reference(shape, *inputs, None), Config("bsp")
    out = reference.make_output(shape)
    plan = host.prepare(shape, config, workspace)
    assert isinstance(plan, Returning)
    plan(*inputs, out)
    alone = plan.compute(*inputs)
    assert alone.is_contiguous() and alone.shape == out.shape
    found = [relative_error(one, exact) / reference.tolerance(shape) for one in (out, alone)]
    out.fill_(torch.nan)
    plan.without_copy(*inputs, out)
    assert torch.isnan(out).all()
    return found


@pytest.mark.parametrize("causal", ["yes", "no"])
def test_the_library_is_right_with_and_without_an_output(causal: str) -> None:
    shape = FlashPrefill(2, 6, 2, 64, 75, dtype="bf16", causal=causal)
    (found,) = emulated.run(1, library, shape)
    assert max(found) < 1


Q, KV = torch.zeros(1, 16, 4, 64).half(), torch.zeros(1, 16, 2, 64).half()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (dict(q=Q.float()), "q is torch.float32"),
        (dict(q=Q[0]), "q and k must have 4 dimensions, not 3 and 4"),
        (dict(k=KV[:, :8]), r"k is \[1, 8, 2, 64\] but must be \[1, 16, 2, 64\]"),
        (dict(v=KV.bfloat16()), "v is torch.bfloat16"),
        (
            dict(k=KV[..., :32], v=KV[..., :32]),
            r"k is \[1, 16, 2, 32\] but must be \[1, 16, 2, 64\]",
        ),
        (dict(q=Q.transpose(1, 2)), "q must be contiguous"),
        (dict(out=KV.clone()), r"out is \[1, 16, 2, 64\] but must be \[1, 16, 4, 64\]"),
        (dict(causal="perhaps"), "causal='perhaps' is not one of yes, no"),
    ],
)
def test_operands_that_do_not_fit_are_named(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], sentence: str
) -> None:
    told = Selection(Config("flash", block_m=64, block_n=32), "fallback", "told")
    monkeypatch.setattr("tftune.select_kernel", lambda *_: told)
    operands = dict(q=Q, k=KV, v=KV) | given
    with pytest.raises(ValueError, match=sentence):
        ops.flash_prefill(**operands, workspace=lone(1))
