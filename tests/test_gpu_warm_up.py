"""tftune.warm_up on two GPUs: skipped where there are fewer. Each rank is this file as a script."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

NO_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"}
"""As benchmarks/node.py has it."""
WORLD, DEADLINE_S = 2, 400.0
LAYOUT = {"dtype": "bf16", "shard": "m", "b_layout": "nk"}
PAYLOAD = 1 << 26
KEPT_BYTES = 1 << 28
"""What may stay allocated: workspaces of the GEMM library, not one shape's operands and plans."""
MOST_SPINNING = 3
"""Configs of one variant that are tried at a shape, at most."""
SLOWER = 0.98
"""BSP / confirmed when measured again: noise of two measurements, not of one."""


def ranks(part: str, rows: Path, *, deadline_s: float = DEADLINE_S) -> tuple[list[int], str]:
    """Exit codes of the ranks that run one part of this file, and what they printed."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        with output.open("w") as file:
            said = {"stdout": file, "stderr": subprocess.STDOUT, "env": os.environ | NO_MULTICAST}
            words = [sys.executable, __file__, part, folder, str(rows)]
            started = [subprocess.Popen([*words, str(rank)], **said) for rank in range(WORLD)]
        until = time.monotonic() + deadline_s
        try:
            codes = [process.wait(max(0.1, until - time.monotonic())) for process in started]
        finally:
            for process in started:
                process.kill()
                process.wait()
        return codes, output.read_text()


@pytest.mark.gpu(WORLD)
@pytest.mark.parametrize("part", ["in_place", "eager", "sandbox"])
def test_what_is_confirmed_is_right_and_not_slower_than_bsp(part: str, tmp_path: Path) -> None:
    codes, output = ranks(part, tmp_path / "rows.jsonl")
    print(output)
    assert codes == [0] * WORLD, output


@pytest.mark.gpu(WORLD)
def test_a_kernel_that_spins_ends_the_process_and_is_left_out_by_the_next(tmp_path: Path) -> None:
    """Rank 1 never launches, so that rank 0's kernel waits for ever."""
    rows = tmp_path / "rows.jsonl"
    began = time.monotonic()
    codes, output = ranks("spin", rows)
    print(output)
    assert codes[0] == 75 and codes[1] != 0, output  # NCCL may end rank 1 when rank 0 is gone
    assert time.monotonic() - began < 120 and "had not ended its check after 5 s" in output
    hung = 0
    while codes[0] == 75 and hung < MOST_SPINNING:  # each start leaves one config of push out
        codes, output = ranks("spin", rows)
        hung += 1
        print(output)
    assert codes == [0] * WORLD, output
    assert rows.read_text().count('"failure":"hang"') == hung


def _joined(folder: str, rank: int) -> Any:
    """The workspace of this rank; the shortlist is the default fused configs, which are right."""
    import torch
    import torch.distributed as dist

    import tftune
    from tftune.db.target import detect
    from tftune.kernels.comm.workspace import Workspace
    from tftune.kernels.core.registry import operation
    from tftune.models.selector import Selector

    def shortlist(self: Selector, shape: Any, mode: str, top: int) -> tuple[Any, ...]:
        space = operation(shape.op).space
        known = [space.complete(config) for config in space.defaults(shape, detect().chip)]
        return tuple(config for config in known if config.variant != "bsp")[:top]

    torch.cuda.set_device(rank)
    meeting = {"init_method": f"file://{folder}/rendezvous", "rank": rank, "world_size": WORLD}
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank), **meeting)  # type: ignore
    workspace = Workspace.create(None, PAYLOAD)
    tftune.bind(None)
    Selector.shortlist = shortlist  # type: ignore[method-assign]
    return workspace


def _shapes() -> list[Any]:
    """Shapes of the engine layout, M off the powers of two among them, and one decode."""
    from tftune.kernels.all_gather_gemm import AllGatherGemm
    from tftune.kernels.flash_decode import FlashDecode

    sizes = [(24, 3584, 8192), (768, 2560, 8192), (3000, 7168, 4096), (4096, 3584, 8192)]
    layers = [AllGatherGemm(m, n, k, WORLD, **LAYOUT) for m, n, k in sizes]
    return [*layers, FlashDecode(3, 64, 8, 128, 4000, WORLD)]


def _confirm(workspace: Any, rows: str, mode: str, **options: Any) -> None:
    """Warm up, then hold what tftune.ops computes against the reference, and its time to BSP's."""
    import torch
    import torch.distributed as dist

    import tftune

    torch.cuda.synchronize()
    allocated, began = torch.cuda.memory_allocated(), time.monotonic()
    found = tftune.warm_up(_shapes(), workspace, mode=mode, rows=rows, **options)
    seconds = time.monotonic() - began
    left = torch.cuda.memory_allocated() - allocated
    if workspace.rank == 0:
        print(f"{mode} {options}: {seconds:.1f} s with compiling, {left} bytes still allocated")
        for shape, selection in found.items():
            print(f"{shape}: {selection.config}: {selection.reason}")
    assert left < KEPT_BYTES, "plans that were only timed are gone"
    answers: list[Any] = [None] * WORLD
    dist.all_gather_object(answers, [str(selection.config) for selection in found.values()])
    assert answers[0] == answers[1]
    for shape, selection in found.items():
        assert selection.source == "measured"
        assert tftune.select_kernel(shape, mode).config == selection.config
        _is_right(workspace, shape, mode)
    for shape, selection in found.items():  # which forgets what was confirmed
        if mode == "graph" and shape.op == "all_gather_gemm":
            _is_not_slower(workspace, shape, selection.config)


def _call(workspace: Any, shape: Any, mode: str) -> tuple[Callable[[], Any], Any]:
    """The layer's call, and what it must compute."""
    import torch.distributed as dist

    from tftune import ops
    from tftune.kernels.core.registry import operation

    module = operation(shape.op).module("reference")
    inputs = module.make_inputs(shape, workspace.rank, 5, workspace.device)
    exact = module.reference(shape, *inputs, dist.group.WORLD)
    if shape.op == "flash_decode":
        return lambda: ops.flash_decode(*inputs[:4], workspace, mode=mode), exact
    layout = {"shard": shape.shard, "b_layout": shape.b_layout}
    return lambda: ops.all_gather_gemm(*inputs, workspace, **layout, mode=mode), exact


def _is_right(workspace: Any, shape: Any, mode: str) -> None:
    import torch

    from tftune.kernels.core.registry import operation
    from tftune.tuner.bench.check import relative_error

    call, exact = _call(workspace, shape, mode)
    result = call()
    if mode == "graph":
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            result = call()
        for _ in range(3):
            result.fill_(float("nan"))
            graph.replay()
    torch.cuda.synchronize()
    tolerance = operation(shape.op).module("reference").tolerance(shape)
    error = relative_error(result, exact)
    assert error <= tolerance, f"{shape} errs by {error / tolerance:.2f} tolerances"


def _is_not_slower(workspace: Any, shape: Any, config: Any) -> None:
    """Once more, as a layer calls it: captured through tftune.ops, in turn with BSP's forms."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
    import strangers

    from tftune.pipeline.places import forms

    selectors = [strangers.answering(shape, one) for one in [config, *forms(shape, workspace.chip)]]
    us, *bsp_us = strangers.medians_us(shape, selectors, workspace)
    assert min(bsp_us) / us >= SLOWER, f"{shape}: BSP takes {min(bsp_us)} us, {config} {us}"


def _spin(workspace: Any, rows: str) -> None:
    """A warm-up whose first fused config is never launched by rank 1."""
    import tftune
    from tftune.kernels.all_gather_gemm import host

    prepare, shape = host.prepare, _shapes()[0]

    def planted(shape: Any, config: Any, workspace: Any) -> Any:
        plan = prepare(shape, config, workspace)
        waits = config.variant == "push" and workspace.rank == 1
        return (lambda *operands: None) if waits else plan

    host.prepare = planted  # type: ignore[assignment]
    found = tftune.warm_up([shape], workspace, rows=rows, deadline_s=5.0)
    assert found[shape].config.variant != "push"


def main(part: str, folder: str, rows: str, rank: str) -> None:
    import torch
    import torch.distributed as dist

    workspace = _joined(folder, int(rank))
    if part == "spin":
        _spin(workspace, rows)
    else:
        mode = "eager" if part == "eager" else "graph"
        _confirm(workspace, rows, mode, sandbox=part == "sandbox")
    dist.barrier()
    torch.cuda.synchronize()
    sys.stdout.flush()
    os._exit(0)  # destroying NCCL's communicators waits for ever on captured graphs that hold them


if __name__ == "__main__":
    main(*sys.argv[1:])
