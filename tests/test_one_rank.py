"""One rank: nothing to exchange, the base of scaling plots. Every variant compiles, is searched,
trained, exported, verified and called; the contracts run it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from command_line import Tftune
from lone import lone
from push_artifact import push_everywhere

from tftune.db.store import Store
from tftune.db.target import Target
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.chips import CHIPS, H200, MI300X, Chip
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.runtime.compile import gpu_target
from tftune.models.timeline.simulator import predict
from tftune.tuner.bench.node import NodeBench
from tftune.tuner.bench.rounds import Deadlines, Rounds
from tftune.tuner.calibration.calibrate import NO_PEER, calibrate
from tftune.tuner.search.search import EFFORTS, Effort

OP = "all_gather_gemm"
GEMMS = (
    AllGatherGemm(33, 40, 128, 1),
    AllGatherGemm(16, 36, 72, 1, "bf16", b_layout="nk"),
    AllGatherGemm(33, 40, 128, 1, shard="m"),
    AllGatherGemm(64, 33, 64, 1, "bf16", "m", "nk"),
)
DECODES = (FlashDecode(2, 8, 2, 64, 48, 1), FlashDecode(1, 4, 4, 64, 64, 1, "bf16", "heads", 16))


@pytest.mark.parametrize(
    "chip",
    [H200, pytest.param(MI300X, marks=pytest.mark.thorough)],
    ids=lambda chip: chip.name,
)
@pytest.mark.parametrize("variant", ["pull", "staged", "push", "push_ce"])
def test_every_fused_variant_compiles(variant: str, chip: Chip) -> None:
    """Where peers are counted, their number is zero here."""
    for shard, order in (("k", "chunk"), ("m", "chunk"), ("k", "group"), ("m", "column")):
        shape = AllGatherGemm(256, 512, 1024, 1, shard=shard)
        knobs: dict[str, Any] = dict(
            block_m=64, block_n=64, num_warps=4, num_stages=3, rows_per_flag=64
        )
        if variant != "push_ce":
            knobs |= dict(k_per_flag=256)
            if (variant, order) != ("pull", "group"):
                knobs |= {"order": order}
        config = SPACE.complete(Config(variant, **knobs))
        assert SPACE.why_invalid(shape, config) is None
        (source,) = operation(OP).module("host").kernel_sources(shape, config, chip)
        assert source.compile(gpu_target(chip.arch)).asm


def test_the_gemm_alone_is_bsp() -> None:
    """One form by default; all forms are the same call, which asks no library for a gather."""
    import torch

    from tftune.kernels.all_gather_gemm.host import prepare
    from tftune.kernels.all_gather_gemm.reference import make_inputs, make_output

    for shape in GEMMS:
        for chip in (None, *CHIPS.values()):
            defaults = SPACE.defaults(shape, chip)
            assert [c for c in defaults if c.variant == "bsp"] == [Config("bsp", form="gather")]
        a, b = make_inputs(shape, 0, 0)
        workspace = lone(1, 0)
        results = []
        for form in ("gather", "gather_copy", "local_transpose", "gather_copy_registered"):
            results.append(make_output(shape))
            prepare(shape, Config("bsp", form=form), workspace)(a, b, results[-1])
        weights = b.t() if shape.b_layout == "nk" else b
        assert all(torch.equal(result, torch.matmul(a, weights)) for result in results)
    registered = AllGatherGemm(8192, 512, 8192, 1), Config("bsp", form="gather_registered")
    assert "NCCL alone registers" in (SPACE.why_invalid(*registered, H200) or "")


@pytest.mark.parametrize("chip", [H200, MI300X], ids=lambda chip: chip.name)
def test_the_model_has_nothing_to_exchange(chip: Chip) -> None:
    for m in (16, 4096):
        one, eight = (AllGatherGemm(m, 3584, 8192, world) for world in (1, 8))
        for shape in (one, AllGatherGemm(m, 3584, 8192, 1, shard="m")):
            for variant in SPACE.variants:
                for config in islice(SPACE.configs(shape, chip, (variant,)), 0, 2000, 97):
                    assert 0 < predict(shape, config, "graph", chip) < math.inf
        bsp = Config("bsp", form="gather")
        forms = [form for form in SPACE.defaults(eight, chip) if form.variant == "bsp"]
        gathered = min(predict(eight, form, "graph", chip) for form in forms)
        assert predict(one, bsp, "graph", chip) < gathered


def test_the_model_of_one_gpu_needs_no_links() -> None:
    """What one GPU alone can measure is enough for one rank, and not for two."""
    from tftune.kernels.core.chip import RATE_NAMES

    alone = CHIPS["h100-nvl"].with_constants({name: H200.known(name) for name in RATE_NAMES})
    assert alone.missing(1) == () and "collective_us" in alone.missing(2)
    for shape in (*GEMMS, *DECODES):
        for config in operation(shape.op).space.defaults(shape, alone):
            assert 0 < predict(shape, config, "eager", alone) < math.inf
    with pytest.raises(ValueError, match=r"off for h100-nvl, since .*link_bytes_per_us"):
        predict(AllGatherGemm(16, 40, 128, 2), Config("push"), "graph", alone)


def test_a_calibration_leaves_out_what_needs_a_peer() -> None:
    found = dict(calibrate(Target.parse("h100-nvlx1"), emulated=True))
    left_out = {name for name, answer in found.items() if answer == NO_PEER}
    assert left_out == {"loads", "collective", "large_collective", "copy_engines"}
    measured = {name for answer in found.values() if isinstance(answer, dict) for name in answer}
    assert {"block_us", "poll_us", "hbm_bytes_per_us", "stream_share"} <= measured
    assert not measured & {"signal_us", "flag_us", "link_bytes_per_us", "links_bytes_per_us"}


@pytest.fixture(scope="module")
def node() -> Iterator[None]:
    """This process on a machine of one H100, whose rank is emulated."""

    def bench(target: Target, payload_bytes: int, **options: Any) -> NodeBench:
        return NodeBench(
            target, 1 << 20, emulated=True, deadlines=Deadlines(check=30.0), rounds=Rounds(2, 2, 5)
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tftune.pipeline.bench_factory.detect", lambda: Target.parse("h100x1"))
        patch.setattr("tftune.db.target.detect", lambda: Target.parse("h100x1"))
        patch.setattr("tftune.tuner.bench.node.NodeBench", bench)
        patch.setattr("tftune.db.target.build", lambda: {"triton": "3.7.1"})
        patch.setitem(EFFORTS, "quick", Effort(5, 1, "for tests"))
        yield


@pytest.mark.thorough
def test_one_gpu_goes_the_whole_way(node: None, tmp_path: Path, tftune: Tftune) -> None:
    """search, train, export, select, verify, doctor, and the commands of tune."""
    shapes = ";".join(f"m={m},n=40,k=64,world=1,shard=m" for m in (7, 16, 33))
    options = "--mode graph --effort quick --variant push --pool 4"
    assert tftune(f"search {OP} --shapes {shapes} {options}").code == 0
    with Store.open(tmp_path / "tftune.db", write=False) as store:
        rows = store.trials()
    assert {(row.shape.to_dict()["world"], row.target) for row in rows} == {(1, "h100x1")}
    assert tftune(f"train {OP}").code == tftune(f"export {OP} --out a.json").code == 0
    ran = tftune(f"select {OP} m=16,n=40,k=64,world=1,shard=m --artifact a.json --json")
    answer = json.loads(ran.out)
    assert (ran.code, answer["target"], answer["source"]) == (0, "h100x1", "measured")
    push_everywhere(Path("a.json"), Path("push.json"), AllGatherGemm(33, 40, 64, 1, shard="m"))
    ran = tftune(f"verify {OP} --artifact push.json --leaves 1")
    assert ran.code == 1 and "slower than BSP" in ran.out  # it ran, and was right
    ran = tftune("doctor")
    assert ran.code == 0 and "target: h100x1" in ran.out
    ran = tftune("tune --show h100x1")
    assert ran.code == 0 and "calibrate --out h100x1.chip.json" in ran.out
    ran = tftune("calibrate --gpus 2")
    assert ran.code == 2 and "--gpus 2 is more than the 1 GPUs" in ran.err


def called(workspace: Workspace) -> list[float]:
    """Errors in tolerances of what tftune.ops runs with one rank."""
    import tftune
    from tftune.kernels.all_gather_gemm import reference
    from tftune.models.selector import Selector
    from tftune.ops import all_gather_gemm
    from tftune.tuner.bench.check import relative_error

    tftune.use(Selector(bsp_only="nothing is measured here"))
    errors = []
    for shape in GEMMS:
        a, b = reference.make_inputs(shape, 0, 0)
        exact = reference.reference(shape, a, b, workspace.group)
        c = all_gather_gemm(a, b, workspace, shard=shape.shard, b_layout=shape.b_layout)
        errors.append(relative_error(c, exact) / reference.tolerance(shape))
    return errors


def test_ops_run_with_one_rank() -> None:
    (errors,) = emulated.run(1, called)
    assert len(errors) == len(GEMMS) and max(errors) < 1
