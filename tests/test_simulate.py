"""Several nodes, simulated: one node is the model of today, to the bit; skew and NICs do what a
hand calculation says; the command says `simulated` on every line."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Tftune

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.chips import H200, MI300X, Chip
from tftune.kernels.core.space import Config
from tftune.models.timeline.simulator import predict
from tftune.studies.nodes import published as script
from tftune.studies.nodes.play import VARIANTS, run
from tftune.studies.nodes.topology import NICS, Topology, ring_all_gather_us

SHAPE = AllGatherGemm(512, 3584, 8192, 16)
TWO = Topology(2, 8, NICS["ndr"])


def default(shape: AllGatherGemm, chip: Chip, variant: str) -> Config:
    return next(config for config in SPACE.defaults(shape, chip) if config.variant == variant)


@pytest.mark.parametrize("chip", [H200, MI300X], ids=["h200", "mi300x"])
@pytest.mark.parametrize("m", [8, 1000, 8192])
@pytest.mark.parametrize("shard", ["k", "m"])
def test_one_node_without_skew_is_the_model_of_today(chip: Chip, m: int, shard: str) -> None:
    shape = AllGatherGemm(m, 3584, 8192, 8, "fp16", shard)
    one = Topology(1, 8, NICS["hdr"])
    for mode in ("graph", "eager"):
        for variant in VARIANTS:
            config = default(shape, chip, variant[:3] if variant[0] == "b" else "push")
            found = run(shape, variant, config, mode, chip, one).over_seeds(0.0)
            assert found.low_us == found.us == found.high_us == predict(shape, config, mode, chip)


def us(variant: str, topology: Topology = TWO, skew_us: float = 0.0) -> float:
    shape = AllGatherGemm(SHAPE.m, SHAPE.n, SHAPE.k, topology.world)
    config = default(SHAPE, H200, "bsp" if variant[0] == "b" else "push")
    return run(shape, variant, config, "graph", H200, topology).over_seeds(skew_us, 40).us


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_slower_network_and_more_skew_take_longer(variant: str) -> None:
    slow = Topology(2, 8, NICS["hdr"])
    assert us(variant, slow) >= us(variant) and us(variant, skew_us=20.0) > us(variant) + 10
    assert us(variant, Topology(2, 8, NICS["ndr"], 1)) > us(variant)


def test_one_copy_for_each_node_beats_one_for_each_rank() -> None:
    """With 8 nodes a flat push sends 56 copies over its NIC, a hierarchical one 7."""
    eight = Topology(8, 8, NICS["ndr"])
    assert us("push_hierarchical", eight) < us("push_flat", eight)
    sent_us = 56 * SHAPE.m * SHAPE.k * 2 / 64 / eight.gpu_bytes_per_us
    assert us("push_flat", eight) > sent_us


def test_bsp_waits_for_the_last_rank_and_nothing_ends_before_it_could() -> None:
    starts = TWO.starts_us(10.0, 3)
    bsp = run(SHAPE, "bsp", default(SHAPE, H200, "bsp"), "graph", H200, TWO)
    assert bsp.call_us(starts) == pytest.approx(max(starts) + bsp.us)
    push = run(SHAPE, "push_flat", default(SHAPE, H200, "push"), "graph", H200, TWO)
    assert max(starts) + push.work_us <= push.call_us(starts) <= max(starts) + push.us


def test_peers_are_every_other_rank_once_and_near_ones_first() -> None:
    for rank in (0, 7, 13):
        peers = [TWO.peer(rank, number) for number in range(15)]
        assert sorted([rank, *peers]) == list(range(16))
        assert {peer // TWO.gpus for peer in peers[:7]} == {rank // TWO.gpus}


def test_a_ring_crosses_the_node_with_all_but_its_own_data() -> None:
    alone_us = ring_all_gather_us(TWO, 0, 20.0)
    assert ring_all_gather_us(TWO, 8e6, 20.0) == pytest.approx(
        alone_us + 15 * 8e6 / TWO.node_bytes_per_us
    )


def test_errors_name_both_numbers() -> None:
    with pytest.raises(ValueError, match=r"world=16 .* 4 x 8 = 32"):
        run(SHAPE, "bsp", default(SHAPE, H200, "bsp"), "graph", H200, Topology(4, 8, NICS["ndr"]))
    with pytest.raises(ValueError, match="nodes=0"):
        Topology(0, 8, NICS["ndr"])
    with pytest.raises(ValueError, match="bsp_hierarchical"):
        run(SHAPE, "pull", default(SHAPE, H200, "push"), "graph", H200, TWO)


def test_every_line_says_simulated(tftune: Tftune) -> None:
    words = "study nodes all_gather_gemm --nodes 2 --shapes paper:m=16+2048 --skew 0+5 --seeds 20"
    ran = tftune(words)
    lines = ran.out.splitlines()
    assert ran.code == 0 and len(lines) == 2 + 4 * (2 + 3 * 3) + 4
    assert all(line.startswith("simulated") for line in lines)


def test_half_of_the_public_runs_is_held_out_and_the_page_shows_them(root: Path) -> None:
    found = script.cases()
    runs = {(case.source, case.run): case.fit for case in found}
    assert len(runs) == 14 and sum(runs.values()) == 7
    page = (root / "docs/multinode.md").read_text()
    assert [line for line in script.table(found) if line not in page] == [], (
        "run `python -m tftune.studies.nodes.published` and put its table into docs/multinode.md"
    )
