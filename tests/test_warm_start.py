"""Neighbours below and above, in the nearest layers; and the winners of rows of whatever kernel,
world and layout."""

from __future__ import annotations

from dataclasses import replace

from stored import trial

from tftune.db.trial import Failure, Measurement
from tftune.kernels.all_gather_gemm import AllGatherGemm as Gemm
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.tuner.search.warm_start import PastWinners, neighbours

HERE = Gemm(40, 3584, 8192, 2, "bf16", "m", "nk")


def test_one_below_and_one_above_of_the_nearest_layers() -> None:
    others = [replace(HERE, m=m, n=n) for n in (3584, 4096, 16384) for m in (8, 32, 64, 128, 1024)]
    assert neighbours(HERE, others) == [
        replace(HERE, m=m, n=n) for n in (3584, 4096) for m in (32, 64)
    ]


def test_the_same_size_comes_first_and_the_ends_have_one_neighbour() -> None:
    others = [replace(HERE, m=m) for m in (2, 40, 48)]
    assert [shape.m for shape in neighbours(HERE, others)] == [40, 2, 48]
    assert [shape.m for shape in neighbours(replace(HERE, m=4096), others)] == [48]


def test_another_layout_is_further_than_another_size() -> None:
    plain, far = Gemm(40, 3584, 8192, 2), replace(HERE, m=1024, n=512, k=512)
    assert neighbours(HERE, [plain, far], layers=1) == [far]
    assert neighbours(HERE, [plain], layers=1) == [plain], "any rows are better than none"


def test_sequences_are_a_size_of_a_layer_and_tokens_grow() -> None:
    here = FlashDecode(3, 64, 8, 128, 5000, 2)
    others = [
        replace(here, batch=batch, kv_len=length)
        for batch in (1, 4, 16)
        for length in (1024, 4096, 8192)
    ]
    assert neighbours(here, others, layers=1) == [
        replace(here, batch=4, kv_len=length) for length in (4096, 8192)
    ]


PUSH = Config("push", block_m=16)
SLOW = Config("push", block_m=32)
PULL = Config("pull", block_m=16)


def rows(shape: Gemm, mode: str = "graph", **speedups: float) -> list[object]:
    configs = {"push": PUSH, "slow": SLOW, "pull": PULL}
    return [trial(shape=shape, mode=mode, config=configs[name],
            outcome=Measurement((10.0,), (10.0 * times,)))
            for name, times in speedups.items()]  # fmt: skip


def test_winners_come_by_place_and_only_where_they_came_near() -> None:
    near, above = replace(HERE, m=32), replace(HERE, m=64)
    past = PastWinners(
        [*rows(near, push=1.3, slow=1.2, pull=1.25), *rows(above, pull=1.0, slow=1.4)]
    )  # type: ignore[list-item]
    assert past.near(HERE, "graph") == [PUSH, PULL, SLOW] and past.near(HERE, "eager") == []


def test_bsp_failures_and_rows_without_a_baseline_win_nothing() -> None:
    bsp = trial(config=Config("bsp"))
    failed = trial(outcome=Failure("hang", "late"))
    alone = trial(outcome=Measurement((1.0,)))
    assert PastWinners([bsp, failed, alone]).near(trial().shape, "graph") == []
