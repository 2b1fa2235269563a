"""Whether the artifacts that ship serve models which nobody measured: random shapes of such models,
each called through `tftune.ops` as the artifact answers, beside every form of BSP and beside what
`tftune.warm_up` then finds.

usage: python benchmarks/strangers.py [--world 2] [--shapes 40] [--seed 1] [--seconds 280] [--cpu]

Sizes are those of MODELS, none of which a committed row has: bf16, weights [N, K], tokens along M,
any M. Each shape's calls are captured, read cold operands and take turns; times are medians, of the
slowest rank. `served` is BSP / answered, `found` BSP / confirmed in place. Of the shapes where a
kernel found in place is at least 3 % faster than BSP, `answered` is the share at which the artifact
answers a kernel, too. `below`: shapes served at less than 0.99. --cpu rehearses on emulated ranks.

RESULT strangers target=.. shapes=.. below=.. worst=.. served=.. found=.. gains=.. answered=..
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import log2, nan
from statistics import geometric_mean, median
from typing import Any

import launch
from rows import COMMON, ONE_LAYER, SIZES

import tftune
from tftune.db.evidence import BSP
from tftune.db.target import detect
from tftune.kernels.comm import emulated
from tftune.kernels.core.registry import operation, payload_bytes
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.pipeline.model_config import config_of
from tftune.pipeline.model_shapes import model_shapes
from tftune.pipeline.places import forms
from tftune.tuner.bench import clock
from tftune.tuner.bench.ranks import Ranks

MODELS = {
    "qwen2.5-14b": (5120, 40, 8, 128, 13824),
    "phi-3-medium": (5120, 40, 10, 128, 17920),
    "yi-34b": (7168, 56, 8, 128, 20480),
    "mistral-nemo-12b": (5120, 32, 8, 128, 14336),
    "gemma-2-27b": (4608, 32, 16, 128, 36864),
    "granite-3-8b": (4096, 32, 8, 128, 12800),
}
"""Sizes of each publisher's config.json, as `rows.SIZES` names them."""
TINY = {"tiny": (128, 4, 2, 32, 256)}
LARGEST_M = 8192
ROUNDS = 15
FASTER, SLOWER = 1.03, 0.99


def drawn(count: int, world: int, seed: int, tiny: bool) -> list[Shape]:
    """So many shapes, each of one layer of one model; M is even in its logarithm."""
    rng, chosen = random.Random(seed), dict[Shape, None]()
    models, largest_m = (TINY, 64) if tiny else (MODELS, LARGEST_M)
    while len(chosen) < count:
        name = rng.choice(list(models))
        fields = COMMON | ONE_LAYER | dict(zip(SIZES, models[name], strict=True))
        m = round(2 ** rng.uniform(0, log2(largest_m)))
        shapes = model_shapes(config_of(fields, name), world, "both", (m,), ()).shapes
        chosen[rng.choice(shapes)] = None
    return list(chosen)


@dataclass(frozen=True)
class Case:
    """A shape, and microseconds of a call, on the slowest rank."""

    shape: str
    variant: str
    """What the artifact answers."""
    source: str
    bsp_us: float
    """The time of BSP's fastest form."""
    served_us: float
    found_us: float

    @property
    def served(self) -> float:
        return self.bsp_us / self.served_us

    @property
    def found(self) -> float:
        return self.bsp_us / min(self.bsp_us, self.found_us)


CALLS = {
    "all_gather_gemm": ("shard", "b_layout"),
    "gemm_reduce_scatter": ("b_layout",),
    "gemm_all_reduce": ("b_layout",),
    "all_reduce": (),
}
"""Fields of the shape that a layer's call says beside its operands."""


def called(shape: Shape, selector: tftune.Selector, workspace: Any, *operands: Any) -> Any:
    """The layer's call, where this selector answers."""
    tftune.use(selector)
    named: dict[str, Any] = {name: getattr(shape, name) for name in CALLS[shape.op]}
    if shape.op == "all_reduce" and len(operands) > 1:
        operands, named = operands[:1], dict(zip(("residual", "weight"), operands[1:], strict=True))
    return getattr(tftune.ops, shape.op)(*operands, workspace, **named)


def medians_us(shape: Shape, selectors: Sequence[tftune.Selector], workspace: Any) -> list[float]:
    """The times of the layer's call with each selector, captured, the calls in turn."""
    reference = operation(shape.op).module("reference")
    cache = 0 if workspace.chip is None else workspace.chip.cache_bytes
    sets = [reference.make_inputs(shape, workspace.rank, seed, workspace.device) for seed in (0, 2)]
    size = sum(operand.nbytes for operand in sets[0])
    for number in range(2, clock.copies(size, cache) if cache else 2):
        sets.append(tuple(operand.clone() for operand in sets[number % 2]))
    calls = [partial(called, shape, selector, workspace) for selector in selectors]
    for call in calls:
        for operands in sets[:2]:
            call(*operands)
    ranks = Ranks(workspace)
    ranks.barrier()
    if workspace.chip is None:
        return [nan] * len(calls)
    graphs = [clock.GraphCall(call, sets) for call in calls]
    ranks.barrier()
    rounds = clock.graph_rounds(
        graphs, ROUNDS, workspace.barrier(), lambda values: list(ranks.slowest([values])[0])
    )
    return [median(samples) for samples in ranks.slowest(rounds)]


def answering(shape: Shape, config: Config) -> tftune.Selector:
    """A selector that answers this config."""
    selector = tftune.Selector()
    selector.confirm(shape, "graph", tftune.Selection(config, "measured", "asked for"))
    return selector


def compared(workspace: Any, shapes: Sequence[Shape]) -> list[dict[str, Any]]:
    """On one rank: every shape as the artifacts answer, beside BSP and what is found in place."""
    served = tftune.bind(workspace.group)
    answers = {shape: served.select(shape) for shape in shapes}
    confirmed = tftune.warm_up(shapes, workspace, again=True)
    cases = []
    for shape in shapes:
        answer, best = answers[shape], confirmed[shape]
        bsp = forms(shape, workspace.chip)
        asked = dict.fromkeys([*bsp, answer.config, best.config])
        times = medians_us(shape, [answering(shape, config) for config in asked], workspace)
        us = dict(zip(asked, times, strict=True))
        own = min(us[form] for form in bsp), us[answer.config], us[best.config]
        case = Case(f"{shape.op} {shape}", answer.config.variant, answer.source, *own)
        cases.append(vars(case))
    return cases


def report(cases: Sequence[Case], target: str) -> str:
    """A line for each shape, and the line of results."""
    lines = [f"{'BSP us':>9} {'served':>7} {'found':>7}  answer"]
    for case in sorted(cases, key=lambda case: case.served):
        times = f"{case.bsp_us:9.1f} {case.served:7.3f} {case.found:7.3f}"
        lines.append(f"{times}  {case.variant} ({case.source})  {case.shape}")
    gains = [case for case in cases if case.found >= FASTER]
    answered = sum(case.variant != BSP for case in gains) / len(gains) if gains else 1.0
    served, found = (
        geometric_mean(getattr(c, name) for c in cases) for name in ("served", "found")
    )
    lines.append(
        f"RESULT strangers target={target} shapes={len(cases)} "
        f"below={sum(case.served < SLOWER for case in cases)} "
        f"worst={min(case.served for case in cases):.3f} {served=:.3f} {found=:.3f} "
        f"gains={len(gains)} {answered=:.2f}"
    )
    return "\n".join(lines)


def serve(shapes: Sequence[Shape]) -> None:
    """A process under torchrun: rank 0 prints what it found."""
    import torch
    import torch.distributed as dist

    launch.join()
    cases = compared(tftune.Workspace.create(None, payload_bytes(*shapes)), shapes)
    if dist.get_rank() == 0:
        print(report([Case(**case) for case in cases], detect().name), flush=True)
    torch.cuda.synchronize()
    launch.leave()


def main() -> None:
    parser = launch.parser(__doc__)
    parser.add_argument("--world", type=int, default=2)
    parser.add_argument("--shapes", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=280.0, help="after which all is ended")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    shapes = drawn(options.shapes, options.world, options.seed, options.cpu)
    if options.rank:
        return serve(shapes)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"TFTUNE_CACHE": folder, **launch.NO_MULTICAST}
        if options.cpu:
            told = emulated.run(options.world, compared, shapes, timeout_s=options.seconds)[0]
            return print(report([Case(**one) for one in told], f"emulatedx{options.world}"))
        command = launch.torchrun(options.world, __file__)
        subprocess.run(command, check=True, timeout=options.seconds)


if __name__ == "__main__":
    main()
