"""The plug-in in the real vLLM, without a GPU: run by `make engines`."""

from __future__ import annotations

import pytest
from engines import vllm_ranks

from tftune.kernels.comm import emulated

GEMM = {"gemm_all_reduce": (5.0, 10.0)}
SUM = {"all_reduce": (5.0, 10.0)}


def test_gemms_with_an_all_reduce_behind_become_one_operator() -> None:
    for found in emulated.run(2, vllm_ranks.llama, GEMM):
        assert found["calls"] == {"tftune.gemm_all_reduce.default": 2}, found["table"]
        assert found["error"] < 2e-3, found["error"]
        assert found["passes"][-1] == "EnginePass" and found["name"] == "tp:0"


def test_all_reduces_with_vllms_residual_and_norm_become_one_operator() -> None:
    for found in emulated.run(2, vllm_ranks.llama, SUM):
        assert found["calls"] == {"tftune.all_reduce.default": 2}, found["table"]
        assert found["table"].count("with residual and norm") == 2
        assert found["error"] < 4e-3, found["error"]


def test_where_bsp_is_faster_vllms_own_collectives_are_in_the_graph_again() -> None:
    for found in emulated.run(2, vllm_ranks.llama, {}):
        assert found["calls"] == {"vllm.all_reduce.default": 2}, found["table"]
        assert "replaced=0 kept=2" in found["table"] and found["error"] < 2e-3


def test_a_norm_with_a_weight_of_another_dtype_is_left_to_vllm() -> None:
    for table in emulated.run(2, vllm_ranks.wide_weight):
        assert "with residual and norm" not in table and "replaced=2 kept=0" in table


@pytest.mark.parametrize(
    ("eager", "beyond"), [("1", (9, 16, 32, 64, 128, 256, 512, 1024, 2048)), ("0", ())]
)
def test_vllm_asks_ranges_and_keys(eager: str, beyond: tuple[int, ...]) -> None:
    for found in emulated.run(2, vllm_ranks.asked, eager):
        assert found.pop("ranges") == {
            (1, 8): True, (9, 9): eager == "1", (10, 15): False, (9, 2048): eager == "1",
            (3000, 4000): False,
        }  # fmt: skip
        assert found.pop("sizes") == (1, 2, 4, 8, *beyond)
        assert found.pop("apart") == [
            [(1, 32), (33, 256), (257, 512), (513, 2048)],
            [(1, 32), (33, 100), (101, 128), (129, 2048)],
            [(1, 2048)],
        ]
        assert all(found.values()), found
