"""What a call checks beyond its own operands: lengths against the cache, and sizes against those of
the other ranks."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tftune
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.flash_decode import FlashDecode
from tftune.models.selector import Selector


def refused(call: Any) -> str:
    try:
        call()
    except ValueError as error:
        return str(error)
    return "not refused"


def decoded(workspace: Workspace, page: int) -> list[str]:
    """What the first call of a shape says to lengths that the cache does not hold; then, with the
    variable, what a later call says, and one without such lengths."""
    from tftune import ops
    from tftune.kernels.flash_decode import reference

    tftune.use(Selector())
    shape = FlashDecode(2, 4, 2, 64, 16, 1, page_size=page)
    q, k, v, _, pages = reference.make_inputs(shape, 0, 0)
    table = pages if page else None

    def call(*tokens: int, mode: str) -> str:
        given = torch.tensor(tokens, dtype=torch.int32)
        return refused(lambda: ops.flash_decode(q, k, v, given, workspace, table=table, mode=mode))

    first = [call(*tokens, mode="eager") for tokens in ((16, 1600), (-1, 3), (17, 0))]
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TFTUNE_CHECK", "1")
        later = [call(*tokens, mode="graph") for tokens in ((16, 0), (16, 17), (5, 16))]
    return first + later


@pytest.mark.parametrize("page", [0, 16])
def test_lengths_that_the_cache_does_not_hold_are_refused(page: int) -> None:
    (said,) = emulated.run(1, decoded, page, timeout_s=120)
    holds = "and this rank's cache holds 0 to 16 tokens of a sequence; give the tokens"
    for sentence, lengths in zip(said, ("16 to 1600", "-1 to 3", "0 to 17"), strict=False):
        assert f"lengths are {lengths}, {holds}" in sentence
    assert said[3] == said[5] == "not refused" and f"lengths are 16 to 17, {holds}" in said[4]


def unequal(workspace: Workspace, rows: tuple[int, int]) -> dict[str, str]:
    """What each operator says to rows of which this rank has other many than its peer."""
    from tftune import ops

    tftune.use(Selector())
    m = rows[workspace.rank]
    a, b = torch.ones(m, 64).half(), torch.ones(64, 64).half()
    q, k = torch.ones(m, 4, 64).half(), torch.ones(m, 16, 2, 64).half()
    lengths, lse = torch.ones(m, dtype=torch.int32), torch.zeros(m, 4)
    calls = {
        "all_gather_gemm": lambda: ops.all_gather_gemm(a, b, workspace, shard="m", b_layout="kn"),
        "all_reduce": lambda: ops.all_reduce(a, workspace),
        "gemm_reduce_scatter": lambda: ops.gemm_reduce_scatter(a, b, workspace),
        "gemm_all_reduce": lambda: ops.gemm_all_reduce(a, b, workspace),
        "flash_decode": lambda: ops.flash_decode(q, k, k, lengths, workspace),
        "merge_attention": lambda: ops.merge_attention(q, lse, workspace),
    }
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TFTUNE_CHECK", "1")
        return {op: refused(call) for op, call in calls.items()}


@pytest.mark.parametrize("rows", [(8, 4), (8, 0), (0, 8)])
def test_unequal_rows_are_refused_on_every_rank_by_the_check(rows: tuple[int, int]) -> None:
    """Rows on one rank alone, too: the other one has no plan, and would leave its peer waiting."""
    first, second = emulated.run(2, unequal, rows, timeout_s=120)
    assert first == second and len(first) == 6
    for op, sentence in first.items():
        assert f"rank 1 calls {op} of " in sentence and f"and rank 0 calls {op} of " in sentence
        assert "give every rank the same sizes" in sentence


def test_the_check_lets_pass_what_no_rank_has() -> None:
    assert all(set(said.values()) == {"not refused"} for said in emulated.run(2, unequal, (0, 0)))


def test_without_the_variable_a_plan_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    from tftune.checks import checked

    monkeypatch.delenv("TFTUNE_CHECK", raising=False)
    shape = FlashDecode(2, 4, 2, 64, 16, 2)

    def plan(*operands: Any) -> None:
        pass

    assert checked(plan, shape, None) is plan  # type: ignore[arg-type]
