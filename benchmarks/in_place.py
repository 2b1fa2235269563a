"""What a minute of measuring in place finds, beside a search of 64 evaluations for each shape.

usage: python benchmarks/in_place.py --world 2 [--shapes 24] [--seed 1] [--seconds 540] [--db DB]
           [--mode graph] [--cpu]

Shapes are drawn at random over the five operations that engines call: bf16, weights [N, K], tokens
along M, attention over pages of 16. First ranks call `tftune.warm_up` with an empty cache, once
with kernels to compile and once without. Then `tftune search --effort default` measures the same
shapes; --db keeps its rows, and the same command goes on there. A gain is BSP / selected of one
measurement's own rounds; `share` is the sum of their logarithms in place over those of the search.
--cpu rehearses on emulated ranks with tiny shapes, and searches on the analytic model.

RESULT in_place target=.. shapes=.. share=.. s_per_shape=.. compile_s=.. below=..
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from itertools import cycle, islice
from math import log
from typing import Any

import launch

import tftune
from tftune.db.target import detect
from tftune.kernels.comm import emulated
from tftune.kernels.core.grouping import groups
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape

OPS = ("all_gather_gemm", "gemm_reduce_scatter", "gemm_all_reduce", "all_reduce", "flash_decode")
PAYLOAD_BYTES = 1 << 28


def drawn(op: str, world: int, rng: random.Random, tiny: bool) -> Shape:
    """A shape of one operation: M and context from small to large, with sizes of no model."""
    m = world * round(2 ** rng.uniform(0, 2 if tiny else 12))
    n, k = (64, 64) if tiny else (64 * rng.randint(8, 224), 64 * rng.randint(8, 256))
    dtype = "fp16" if tiny else "bf16"
    gemm = {"m": m, "n": n, "k": k, "world": world, "dtype": dtype, "b_layout": "nk"}
    fields: dict[str, dict[str, Any]] = {
        "all_gather_gemm": {**gemm, "shard": "m"},
        "gemm_reduce_scatter": gemm,
        "gemm_all_reduce": gemm,
        "all_reduce": {"m": m, "n": n, "world": world, "dtype": dtype,
                       "norm": rng.choice(("none", "rms"))},
        "flash_decode": {
            "batch": 1 if tiny else rng.randint(1, 64), "kv_heads": 1 if tiny else world * 2,
            "q_heads": 4 if tiny else world * 2 * rng.choice((4, 7, 8)),
            "head_dim": 64 if tiny else 128, "kv_len": 64 if tiny else 1024 * rng.randint(1, 32),
            "world": world, "dtype": dtype, "output": "heads", "page_size": 16,
        },
    }  # fmt: skip
    return operation(op).shape(**fields[op])


def confirmed(workspace: tftune.Workspace, shapes: Sequence[Shape], mode: str) -> Any:
    """On one rank: seconds of both warm-ups, and each shape's gain in the second one."""
    tftune.bind(workspace.group)
    seconds = []
    for _ in range(2):
        began = time.monotonic()
        answers = tftune.warm_up(shapes, workspace, mode=mode, again=True)
        seconds.append(time.monotonic() - began)
    return seconds, {f"{s.op} {s}": answer.speedup or 1.0 for s, answer in answers.items()}


def serve(shapes: Sequence[Shape], mode: str) -> None:
    """A process under torchrun: rank 0 prints what it found."""
    import torch.distributed as dist

    launch.join()
    told = confirmed(tftune.Workspace.create(None, PAYLOAD_BYTES), shapes, mode)
    if dist.get_rank() == 0:
        print(json.dumps(told), flush=True)
    launch.leave()


def in_place(options: argparse.Namespace, shapes: Sequence[Shape]) -> Any:
    """The same from a new world of ranks with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"TFTUNE_CACHE": folder, "TFTUNE_ARTIFACTS": "none", **launch.NO_MULTICAST}
        if options.cpu:
            return emulated.run(options.world, confirmed, shapes, options.mode)[0]
        command = launch.torchrun(options.world, __file__)
        told = subprocess.check_output(command, text=True, timeout=options.seconds)
        return json.loads(told.splitlines()[-1])


def searched(
    options: argparse.Namespace, shapes: Iterable[Shape], seconds: float
) -> dict[str, Any]:
    """The gain of each shape that a search found within the time."""
    gains, by_op = dict[str, Any](), groups(shapes, lambda shape: shape.op)
    for op, listed in by_op.items():
        command = [
            *(sys.executable, "-m", "tftune", "search", op, "--shapes", ";".join(map(str, listed))),
            *("--effort", "default", "--mode", options.mode, "--db", options.db, "--json"),
            *("--budget", f"{seconds / len(by_op):.0f}s"),
            *(("--on", "model", "--target", f"h200x{options.world}") if options.cpu else ()),
        ]
        rows = json.loads(subprocess.check_output(command, text=True))
        gains |= {f"{op} {row['shape']}": row["speedup"] for row in rows}
    return gains


def main() -> None:
    parser = launch.parser(__doc__)
    parser.add_argument("--world", type=int, default=2)
    parser.add_argument("--shapes", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--db", default="in_place.db")
    parser.add_argument("--mode", choices=("graph", "eager"), default="graph")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    began, rng = time.monotonic(), random.Random(options.seed)
    ops = islice(cycle(OPS), options.shapes)
    shapes = list(dict.fromkeys(drawn(op, options.world, rng, options.cpu) for op in ops))
    if options.rank:
        return serve(shapes, options.mode)
    (first_s, second_s), gains = in_place(options, shapes)
    left_s = options.seconds - (time.monotonic() - began)
    best = searched(options, shapes, max(left_s, 1.0))
    print(f"seed {options.seed}: gain in place, and of the search")
    both = {
        name: (gain, max(best[name] or 1.0, 1.0)) for name, gain in gains.items() if name in best
    }
    for name, (gain, most) in both.items():
        print(f"  {gain:6.3f} {most:6.3f}  {name}")
    won = sum(log(most) for _, most in both.values())
    share = sum(log(gain) for gain, _ in both.values()) / won if won else 1.0
    target = f"emulatedx{options.world}" if options.cpu else detect().name
    print(
        f"RESULT in_place {target=!s} shapes={len(both)} {share=:.3f} "
        f"s_per_shape={second_s / len(shapes):.2f} compile_s={first_s - second_s:.1f} "
        f"below={sum(gain < 0.99 for gain, _ in both.values())}"
    )


if __name__ == "__main__":
    main()
