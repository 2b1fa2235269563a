"""The contract on real ranks, one alone among them: skipped where there are too few GPUs. Each rank
is this file, run as a script."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from draws import draw
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
    for shape, config in _cases(world):
        pool.ahead(shape, [config])
    pool.settle(DEADLINE_S)
    pool.close()


def _shapes(world: int) -> list[Any]:
    """The last has more tiles than there are SMs, so that copies, whose runs are odd there, find
    every one of them held. Two before it were refused once."""
    from tftune.kernels.all_gather_gemm import AllGatherGemm

    return [
        AllGatherGemm(1, 96, 64 * world, world),
        AllGatherGemm(7, 200, 72 * world, world, "bf16", b_layout="nk"),
        AllGatherGemm(129, 328, 37 * world, world),
        AllGatherGemm(513, 512, 1024 * world, world),
        AllGatherGemm(24 * world, 328, 520, world, shard="m"),
        AllGatherGemm(65 * world, 256, 1024, world, "bf16", "m", "nk"),
        AllGatherGemm(128 * world, 512, 1024, world, shard="m"),
        AllGatherGemm(24 * world, 200, 523, world, shard="m"),  # K that the ranks need not share
        AllGatherGemm(256, 331, 256 * world, world, "bf16", b_layout="nk"),  # any N by descriptor
        AllGatherGemm(1025, 3584, 517 * world, world),
    ]


def _cases(world: int) -> list[tuple[Any, Any]]:
    """Every variant at every shape, with its default config and some random ones; and more parts of
    tiles than run at once."""
    from tftune.db.target import detect
    from tftune.kernels.all_gather_gemm.space import SPACE
    from tftune.kernels.core.space import Config

    pick, chip = random.Random(0), detect().chip
    cases = []
    for shape in _shapes(world):
        cases += [(shape, config) for config in SPACE.defaults(shape, chip)]
        for variant in ("pull", "staged", "push"):
            drawn = list(islice(draw(SPACE, shape, chip, variant, 200_000), 8))
            cases += [(shape, config) for config in pick.sample(drawn, 2)]
        cases += [(shape, config) for config in _small_copies(shape)]
    rounds = dict(block_m=64, block_n=64, split_k=4, num_warps=4, rows_per_flag=64, k_per_flag=256)
    cases += [
        (_shapes(world)[3], SPACE.complete(Config(variant, **rounds)))
        for variant in ("pull", "staged", "push")
    ]
    return cases + _others(world)


def _others(world: int) -> list[tuple[Any, Any]]:
    """The other operations on the same workspace: few rows and many, whole tiles and tails, both
    outputs and layouts; ragged, paged, and with a norm."""
    from tftune.kernels.all_reduce import AllReduce
    from tftune.kernels.flash_decode import FlashDecode
    from tftune.kernels.merge_attention import MergeAttention

    decodes = [
        FlashDecode(1, 64, 8, 128, 4096, world),
        FlashDecode(4, 96, 12, 128, 1000, world, "bf16"),
        FlashDecode(3, 8 * world, 2 * world, 64, 528, world, output="heads", page_size=16),
    ]
    reductions = [
        AllReduce(1, 8192, world),
        AllReduce(40, 7168, world, "fp16"),
        AllReduce(200, 4096, world),
        AllReduce(3, 2880, world, norm="rms"),
        AllReduce(65, 8192, world, "bf16", "rms"),
        AllReduce(24, 16_384, world, "bf16", "rms"),
    ]
    merges = [
        MergeAttention(1, 8 * world, 128, world),
        MergeAttention(24, 5 * world, 64, world, "fp16", base="2"),
        MergeAttention(7, 24, 256, world, "bf16", "all"),
        MergeAttention(200, 8 * world, 128, world),
    ]
    found = [*_of(decodes), *_of(reductions)]
    return [*found, *_gemm_reductions(world), *_of(merges)]


def _of(shapes: list[Any]) -> list[tuple[Any, Any]]:
    """Every variant of one operation with its default config and a random one."""
    from tftune.db.target import detect
    from tftune.kernels.core.registry import operation

    pick, chip, space = random.Random(0), detect().chip, operation(shapes[0].op).space
    cases = [(shape, config) for shape in shapes for config in space.defaults(shape, chip)]
    for shape in shapes:
        for name in dict.fromkeys(config.variant for config in space.defaults(shape, chip)):
            # More programs on a unit than its registers hold are refused when prepared.
            known = [
                config
                for config in space.configs(shape, chip, (name,))
                if config.to_dict().get("programs_per_unit", 1) == 1
            ]
            cases.append((shape, pick.choice(known)))
    return cases


def _gemm_reductions(world: int) -> list[tuple[Any, Any]]:
    """Both GEMM reductions on the same workspace: every variant with its default config and a
    random one; few rows and many, whole tiles and tails, both layouts of B."""
    from tftune.db.target import detect
    from tftune.kernels.core.registry import operation

    pick, chip, cases = random.Random(0), detect().chip, []
    for name in ("gemm_reduce_scatter", "gemm_all_reduce"):
        op = operation(name)
        for words in (
            "m={8},n=1024,k={512}",
            "m={56},n=328,k={200},b_layout=kn",
            "m={512},n=512,k={256},dtype=fp16",
        ):
            shape = op.shape.parse(scaled(words, world) + f",world={world}")
            defaults = op.space.defaults(shape, chip)
            cases += [(shape, config) for config in defaults]
            for variant in dict.fromkeys(config.variant for config in defaults):
                drawn = list(draw(op.space, shape, chip, variant, 2000))
                cases.append((shape, pick.choice(drawn)))
    return cases


def scaled(words: str, world: int) -> str:
    """The words with each number in braces times the ranks.

    >>> scaled("m={8},n=72", 2)
    'm=16,n=72'
    """
    return re.sub(r"{(\d+)}", lambda found: str(int(found[1]) * world), words)


def _small_copies(shape: Any) -> list[Any]:
    """The copy engine's variants with copies as small as these shapes have them, which a chip's
    rules refuse; several of each shard."""
    from tftune.kernels.all_gather_gemm.space import SPACE
    from tftune.kernels.core.space import Config

    defaults = [
        config
        for config in SPACE.defaults(shape, None)
        if config.variant in ("push_ce", "bsp_chunked")
    ]
    finer = [
        {"rows_per_flag": 64, "copy_streams": 3 if shape.world > 3 else 1},
        {"first_rows": 16, "growth": 7},
    ]
    configs = [
        Config.from_dict(config.to_dict() | knobs)
        for config, knobs in zip(defaults, finer, strict=True)
    ]
    return defaults + [config for config in configs if SPACE.why_invalid(shape, config) is None]


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
    cases = _cases(world)
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
