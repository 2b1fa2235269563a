"""The contract on real ranks, one alone among them: skipped where there are too few GPUs. Each rank
is this file, run as a script."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from gpu_cases import cases_of
from gpu_mutants import refuse_mutants

DEADLINE_S = 240.0
SEEDS = 1, 3, 5
"""Calls cycle through inputs of three seeds, so that a generation never held the same data two
calls ago; flash_decode is ragged with the first."""


def _gpus() -> int:
    torch = pytest.importorskip("torch")
    return int(torch.cuda.device_count())


@pytest.mark.gpu
def test_rotated_copies_run_at_memory_speed_and_warm_ones_faster() -> None:
    """The self-test of every world. A rotation that is too short for the cache, planted, is
    found."""
    import torch

    from tftune.db.target import detect
    from tftune.tuner.bench.cache_selftest import copy_rates

    chip = detect().chip
    copy_rates(chip.cache_bytes, "cuda", lambda: None)  # loads what it launches
    began = time.monotonic()
    rates = copy_rates(chip.cache_bytes, "cuda", lambda: None)
    torch.cuda.synchronize()
    assert time.monotonic() - began < 0.2
    print(f"copy on {chip.name}: {rates.gb_s}")
    assert rates.why_not_cold(chip) is None
    assert copy_rates(chip.cache_bytes // 8, "cuda", lambda: None).why_not_cold(chip) is not None


@pytest.mark.gpu
@pytest.mark.parametrize("alone", [True, False], ids=["one rank", "all ranks"])
def test_contract_on_real_ranks(alone: bool) -> None:
    gpus = 1 if alone else _gpus()
    if gpus < 2 and not alone:
        pytest.skip(f"needs 2 GPUs, this machine has {gpus}")
    _compile_ahead(gpus)
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            subprocess.Popen([sys.executable, __file__, folder, str(rank), str(gpus)])
            for rank in range(gpus)
        ]
        deadline = time.monotonic() + DEADLINE_S
        try:
            for process in ranks:
                assert process.wait(max(0.1, deadline - time.monotonic())) == 0
        finally:
            for process in ranks:
                process.kill()
                process.wait()


@pytest.mark.gpu
@pytest.mark.parametrize("alone", [True, False], ids=["one GPU", "all GPUs"])
def test_a_calibration_answers_every_question(alone: bool) -> None:
    """As of a chip that lacks every constant, so that all are asked and the rest is assumed; then
    the model is on. What is left out of one GPU is said to be."""
    from dataclasses import replace

    from tftune.db.target import Target, detect
    from tftune.tuner.calibration.calibrate import ASSUMED, NO_PEER, calibrate

    gpus = 1 if alone else _gpus()
    if gpus < 2 and not alone:
        pytest.skip(f"needs 2 GPUs, this machine has {gpus}")
    bare = replace(detect().chip, sourced=(), assumed=())
    found = dict(calibrate(Target.of(bare, gpus)))
    print(f"{gpus} x {bare.gpu_names[0]}: {found}")
    silent = {name: answer for name, answer in found.items() if isinstance(answer, str)}
    assert set(silent.values()) <= ({NO_PEER} if alone else set()), silent
    told = [answer for part, answer in found.items() if part != ASSUMED and part not in silent]
    measured = {name: value for answer in told for name, value in answer.items()}
    chip = bare.with_constants(measured, found[ASSUMED])
    assert not chip.missing(gpus), chip.why_no_model(gpus)
    assert 1e5 < chip.rates.hbm_bytes_per_us < 2e7  # 0.1 to 20 TB/s
    assert 1e7 < chip.rates.matrix_flops_per_us < 5e9  # 10 to 5,000 TFLOP/s
    if not alone:
        assert 1e3 < chip.links.engine_bytes_per_us < 2e6 and chip.links.engine_us < 50


@pytest.mark.gpu
def test_one_gpu_goes_the_whole_way(tmp_path: Path) -> None:
    """The commands of a first day with one GPU visible: doctor, calibrate, search, export,
    verify."""
    from push_artifact import push_everywhere

    from tftune.kernels.all_gather_gemm import AllGatherGemm

    first = (os.environ.get("CUDA_VISIBLE_DEVICES") or "0").partition(",")[0]
    seen = {"CUDA_VISIBLE_DEVICES": first, "HIP_VISIBLE_DEVICES": first}

    def run(*line: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tftune", *line]
        done = subprocess.run(
            command, cwd=tmp_path, env=os.environ | seen, text=True, capture_output=True
        )
        print(" ".join(line), done.stdout, done.stderr, sep="\n")
        return done

    shapes = ";".join(
        f"m={m},n=3584,k=4096,world=1,dtype=bf16,shard=m,b_layout=nk" for m in (40, 512)
    )
    assert run("doctor").returncode == 0
    assert run("calibrate", "--out", "one.chip.json").returncode == 0
    search = ("search", "all_gather_gemm", "--shapes", shapes, "--effort", "quick", "--pool", "20")
    assert run(*search, "--chip", "one.chip.json", "--budget", "120s").returncode == 0
    assert run("export", "all_gather_gemm", "--out", "a.json").returncode == 0
    shape = AllGatherGemm(512, 3584, 4096, 1, "bf16", "m", "nk")
    push_everywhere(tmp_path / "a.json", tmp_path / "push.json", shape)
    verified = run("verify", "all_gather_gemm", "--artifact", "push.json")
    assert verified.returncode in (0, 1) and "measured again" in verified.stdout
    assert "failed" not in verified.stdout


def _compile_ahead(world: int) -> None:
    """All kernels into Triton's cache, by all cores: each rank would compile each of them."""
    from tftune.db.target import detect
    from tftune.tuner.bench.compile_pool import CompilePool

    pool = CompilePool(detect().chip, DEADLINE_S)
    for shape, config in cases_of(world):
        pool.ahead(shape, [config])
    pool.settle(DEADLINE_S)
    pool.close()


def _contract(rank: int, world: int, folder: str) -> None:
    import torch
    import torch.distributed as dist

    from tftune.kernels.comm.workspace import Workspace
    from tftune.kernels.core.registry import operation

    torch.cuda.set_device(rank)
    dist.init_process_group(
        "nccl", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=world
    )
    workspace = Workspace.create(None, 1 << 26)
    workspace.payload_tensor.fill_(255)
    dist.barrier()
    torch.cuda.synchronize()
    _peer_is_iris_translation(workspace)
    cases = cases_of(world)
    references = {shape: operation(shape.op).module("reference") for shape, _ in cases}
    operands = {
        (shape, seed): references[shape].make_inputs(shape, rank, seed, workspace.device)
        for shape in references
        for seed in SEEDS
    }
    exact = {
        (shape, seed): references[shape].reference(shape, *given, dist.group.WORLD)
        for (shape, seed), given in operands.items()
    }
    plans = {
        (shape, config): operation(shape.op).module("host").prepare(shape, config, workspace)
        for shape, config in cases
    }
    # What torch gives out may be the stream of the call: copies behind a kernel that waits for them
    # would never end.
    assert (workspace.streams or world == 1) and not {s.cuda_stream for s in workspace.streams} & {
        torch.cuda.Stream().cuda_stream for _ in range(64)
    }
    dist.barrier()
    torch.cuda.synchronize()

    def run(order: list[Any], before: Any) -> list[Any]:
        outputs = []
        for index, (shape, config) in enumerate(order):
            out = references[shape].make_output(shape, workspace.device).fill_(float("nan"))
            before(index)
            plans[shape, config](*operands[shape, SEEDS[index % 3]], out)
            outputs.append(out)
        return outputs

    def errors(order: list[Any], outputs: list[Any]) -> Any:
        """In tolerances, [calls], on the device. A batch whose only sequence is empty is all zeros:
        then any other number errs without bound."""
        expected = [exact[shape, SEEDS[index % 3]] for index, (shape, _) in enumerate(order)]
        found = [
            (out.float() - right).norm() / right.norm().clamp(min=2**-126)
            for out, right in zip(outputs, expected, strict=True)
        ]
        return torch.stack(found) / torch.tensor(
            [references[shape].tolerance(shape) for shape, _ in order], device=workspace.device
        )

    def verify(order: list[Any], worst: Any, what: str) -> None:
        for (shape, config), error in zip(order, worst.tolist(), strict=True):
            assert error <= 1, (
                f"{what}: {config} at {shape} on rank {rank} errs by {error} tolerances"
            )

    shuffle = random.Random(1)
    order = [shuffle.choice(cases) for _ in range(1000)]
    cycles = 2_000_000  # about a millisecond
    late = random.Random(rank)

    def jitter(_: int) -> None:
        if late.random() < 0.1:
            torch.cuda._sleep(late.randrange(cycles // 2))

    for what, before in {
        "plain": lambda index: None,
        "each rank late at random": jitter,
        "one rank late": lambda index: (
            torch.cuda._sleep(cycles) if rank == world - 1 and index % 20 == 0 else None
        ),
        "one rank ahead": lambda index: (
            torch.cuda._sleep(cycles) if rank != 0 and index % 20 == 0 else None
        ),
    }.items():
        verify(order, errors(order, run(order, before)), what)
        if rank == 0:
            print(f"{what}: {len(order)} back-to-back calls are right", flush=True)

    short = order[:20]
    stream = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        captured = run(short, lambda index: None)
    worst = torch.zeros(len(short), device=workspace.device)
    for replay in range(1000):
        for out in captured:
            out.fill_(float("nan"))
        jitter(replay)
        graph.replay()
        worst = torch.maximum(worst, errors(short, captured))  # NaN stays
    verify(short, worst, "1000 replays")
    workspace.set_epoch(2**31 - 5)
    dist.barrier()
    torch.cuda.synchronize()
    verify(short, errors(short, run(short, lambda index: None)), "epoch wraps")
    if rank == 0:
        print(
            f"1000 replays of a graph of {len(short)} calls are right; the epoch wraps", flush=True
        )
    if world > 1:  # most of them change what is heard of peers
        refuse_mutants(workspace)
    dist.barrier()
    torch.cuda.synchronize()
    os._exit(0)  # destroying NCCL's communicators waits for ever on captured graphs that hold them


def _peer_is_iris_translation(workspace: Any) -> None:
    """Our base tables address what Iris' heap maps: what this rank writes by our address, its peer
    finds in its own tensor."""
    import torch
    import torch.distributed as dist

    context = workspace.owner[0]
    bases = context.get_heap_bases().view(torch.int64)
    offset = workspace.payload - int(bases[dist.get_rank()])
    for rank in range(workspace.world):
        assert int(workspace.payload_bases[rank]) == int(bases[rank]) + offset


if __name__ == "__main__":
    _contract(int(sys.argv[2]), int(sys.argv[3]), sys.argv[1])
