"""The physical limit: each resource bounds where it should, nothing measured beats it, and the
table and RESULT line hold the shares."""

from __future__ import annotations

from dataclasses import replace

import limit
import pytest
import speedup

from tftune.db.target import Target
from tftune.kernels.all_gather_gemm import AllGatherGemm, paper
from tftune.kernels.all_gather_gemm.limit import limit as least
from tftune.kernels.core.chips import CHIPS, H200
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode.limit import limit as decode_least


@pytest.mark.parametrize(
    ("shape", "bound", "us"),
    [
        (AllGatherGemm(8192, 3584, 8192, 4), "compute", 674.0),
        (AllGatherGemm(1, 3584, 8192, 4), "memory", (3584 * 8192 + 3584 + 2048) * 2 / 4.25e6),
        (AllGatherGemm(4096, 1024, 8192, 4, shard="m"), "links", 3 / 4 * 4096 * 8192 * 2 / 309e3),
    ],
)
def test_the_slowest_resource_bounds(shape: AllGatherGemm, bound: str, us: float) -> None:
    found = least(shape, H200)
    assert found.bound == bound
    assert found.us == pytest.approx(us + 1.5)


def test_links_of_fewer_peers_are_slower_where_each_peer_has_its_own() -> None:
    chip = CHIPS["mi300x"]
    two, eight = (least(AllGatherGemm(4096, 1024, 8192, world), chip) for world in (2, 8))
    assert two.links == pytest.approx(4096 * 8192 / 47e3)
    assert eight.links == pytest.approx(7 / 8 * 4096 * 8192 * 2 / 325e3)


def test_a_decode_reads_its_cache_then_sends_its_sums() -> None:
    """64 heads of 128 in fp32 and their log-sum-exp to 7 peers, after 33.6 MB of keys and
    values."""
    shape = FlashDecode(1, 64, 8, 128, 8192, 8)
    found = decode_least(shape, H200)
    assert found.bound == "memory" and found.in_turn
    assert found.us == pytest.approx(
        (2 * 8192 * 8 * 128 + 2 * 64 * 128) * 2 / 4.25e6 + 7 * (64 * 128 + 64) * 4 / 309e3 + 1.5
    )
    found = limit.shares([(shape, 20.0), (replace(shape, kv_len=131_072), 200.0)], H200)
    assert [share.part for share in found] == ["kv_below_100_us", "kv_from_100_us"]


def test_no_committed_time_beats_the_limit() -> None:
    """A share well above 1 would mean that a constant of the chip, or a time, is wrong. The rates
    are measured, too: reading 1 GB of B alone came 0.3 % above the rate of a copy."""
    for mode in ("graph", "eager"):
        rows = speedup.lines(speedup.read(speedup.TARGET), mode)
        found = limit.shares(
            ((row.shape, row.median_us(row.winner.config.variant)) for row in rows),
            Target.parse(speedup.TARGET).chip,
        )
        assert found and all(0 < share.reached < 1.01 for share in found)


def test_table_and_result() -> None:
    rows = limit.shares([(shape, 2 * least(shape, H200).us) for shape in paper()], H200)
    assert len(list(limit.table(rows))) == 2 + len(rows)
    last = "| 1 | 0.1 | 13.8 | 0.0 | 15.3 | memory | 30.6 | 0.50 |"
    assert list(limit.table(rows[:1]))[-1] == last
    assert next(limit.table(rows)).startswith("| M | compute | memory ")
    decodes = [(FlashDecode(batch, 64, 8, 128, 1024, 8), 20.0) for batch in (1, 4)]
    head = next(limit.table(limit.shares(decodes, H200)))
    assert head.startswith("| batch | kv_len | compute |")
    rows[0] = replace(rows[0], winner_us=rows[0].limit.us / 0.5**9)
    plain = "RESULT limit mode=graph"
    shares = "m_from_1024=0.500 shapes_m_from_1024=4 m_to_128=0.250 shapes_m_to_128=8"
    assert limit.result(rows, mode="graph") == f"{plain} {shares}"
    assert limit.result(rows[8:10], mode="graph") == plain  # neither large nor small
