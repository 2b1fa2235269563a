"""The plug-in in the real SGLang, without a GPU: run by `make engines`."""

from __future__ import annotations

import pytest
from engines import sglang_ranks

from tftune.kernels.comm import emulated

KINDS = {
    "outplace": "sglang.outplace_all_reduce.default",
    "inplace": "auto_functionalized sglang.inplace_all_reduce.default",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operator", ["gemm_all_reduce", "all_reduce"])
def test_all_reduces_of_sglang_become_one_operator(operator: str, kind: str) -> None:
    for found in emulated.run(2, sglang_ranks.compiled, {operator: (5.0, 10.0)}, kind):
        assert found["calls"] == {f"tftune.{operator}.default": 1}, found["table"]
        assert ("with residual and norm" in found["table"]) == (operator == "all_reduce")
        assert found["error"] < 4e-3 and found["applicable"] == [True, True]
        assert found["uuid follows"]


@pytest.mark.parametrize("kind", KINDS)
def test_where_bsp_is_faster_sglangs_own_collective_is_in_the_graph_again(kind: str) -> None:
    for found in emulated.run(2, sglang_ranks.compiled, {}, kind):
        assert found["calls"] == {KINDS[kind]: 1}, found["table"]
        assert found["error"] < 2e-3
