"""What `tftune.compile_pass` gains on a model that nobody here wrote, and what a start costs.

usage: python benchmarks/transformers_llama.py [--model llama3.1-8b] [--layers 8] [--seconds 400]
           [--whole] [--ours] [--shipped] [--starts 1] [--json FILE] [--cpu]

The model is transformers' own, unmodified, with random weights. torch's `parallelize_module` makes
it parallel: columns of q, k, v, gate and up, rows of o and down, columns of the logits. Without the
pass and with it, torch.compile compiles the decoder layer for each shape (--whole: the model), and
each forward is captured in a CUDA graph. No artifact is used: the pass measures what it meets.
--shipped: the other way round, one start in which the artifacts that ship answer alone.

A decode case is one token of each sequence, attended to itself: its GEMMs and collectives are those
of decoding, its attention reads no cache. A prefill case is one sequence. Times are of one forward
on the slowest rank, without and with the pass in turn: medians.

Each start is a new world of processes: without the pass (cold, then with torch's cache), and with
it (cold, then with torch's cache and what was remembered). Its seconds are those from the parallel
model until every case is captured; importing torch and building the model, which vary by several
seconds from one start to the next, are not among them. `first_s` and `second_s` are what the pass
adds, importing tftune included. Starts that compile nothing vary by half a second: --starts 3 makes
three of each kind, whose medians count. `--cpu` rehearses on two emulated ranks with tiny sizes.

RESULT first_minute target=.. model=.. decode=.. prefill=.. worst=.. first_s=.. second_s=..
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import nan
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import launch
from parallel_models import CASES, MODELS, TINY, TINY_CASES, Case, Model, build, operands

ROUNDS = 25
REPLAYS = 4
WARM_CALLS = 2
LIMIT = 4 * 2.0**-8
"""Relative difference of logits: a few roundings to bf16. More is right where torch differs as much
from itself: what it computes eagerly from what it compiled."""


@dataclass(frozen=True)
class Start:
    """One world of processes. `folder`: torch's cache and ours; `cpu`: emulated ranks."""

    model: str
    layers: int
    folder: str
    with_pass: bool
    timed: bool
    cpu: bool
    whole: bool
    shipped: bool = False

    @property
    def sizes(self) -> Model:
        return TINY if self.cpu else MODELS[self.model]

    @property
    def cases(self) -> tuple[Case, ...]:
        return TINY_CASES if self.cpu else CASES


def eager(model: Any) -> Callable[..., Any]:
    """The model as it is."""
    for layer in model.model.layers:
        vars(layer).pop("forward", None)

    def call(ids: Any, mask: Any) -> Any:
        # Without a mask transformers makes one while a graph is captured, and none before.
        output = model(input_ids=ids, attention_mask=mask, use_cache=False, logits_to_keep=1)
        return output.logits

    return call


def compiled(model: Any, pass_: Any, whole: bool) -> Callable[..., Any]:
    """The model compiled anew: each decoder layer, which torch traces once for all layers, or the
    whole. `pass_`: None for torch alone."""
    import torch

    call = eager(model)
    options = {"post_grad_custom_post_pass": pass_} if pass_ is not None else None
    layers = model.model.layers
    if whole:
        compiled_call: Callable[..., Any] = torch.compile(call, dynamic=False, options=options)
        return compiled_call
    step = torch.compile(type(layers[0]).forward, dynamic=False, options=options)

    def by_layers(ids: Any, mask: Any) -> Any:
        for layer in layers:
            layer.forward = partial(step, layer)
        return call(ids, mask)

    return by_layers


def captured(call: Callable[..., Any], given: Any, cpu: bool) -> tuple[Callable[[], Any], Any]:
    """A replay of the call, and its logits. `given`: token ids and mask."""
    import torch

    if cpu:
        logits = call(*given)
        return lambda: call(*given), logits.clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_CALLS):
            call(*given)
    torch.cuda.synchronize()
    torch.distributed.barrier()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        logits = call(*given)
    graph.replay()
    torch.cuda.synchronize()
    return graph.replay, logits.clone()


def times_us(replays: list[Callable[[], Any]], cpu: bool) -> list[list[float]]:
    """Microseconds of one forward in each round, of each replay in turn, on the slowest rank."""
    import torch
    import torch.distributed as dist

    samples: list[list[float]] = [[] for _ in replays]
    for _ in range(3 if cpu else ROUNDS):
        for replay, us in zip(replays, samples, strict=True):
            replay()
            if cpu:
                began = time.perf_counter()
                replay()
                us.append(1e6 * (time.perf_counter() - began))
                continue
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(REPLAYS):
                replay()
            end.record()
            end.synchronize()
            us.append(1e3 * begin.elapsed_time(end) / REPLAYS)
    slowest = torch.tensor(samples, device="cpu" if cpu else "cuda")
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return [list(map(float, row)) for row in slowest.tolist()]


def serve(start: Start, rank: int, workspace: Any = None) -> dict[str, Any]:
    """What one rank does in one world: compile and capture every case; then time, if asked."""
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    torch._dynamo.config.recompile_limit = 64  # type: ignore[attr-defined]
    device = torch.device("cpu" if start.cpu else f"cuda:{rank}")
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    with torch.no_grad():
        model = build(start.sizes, start.layers, mesh, device)
        begun, pass_ = time.time(), None
        if start.with_pass:
            import tftune

            options = {"workspace": workspace} if start.cpu else {}
            pass_ = tftune.compile_pass(
                mesh.get_group(), training=False, confirm=not start.shipped, **options
            )
        given = {case: operands(case, start.sizes.vocabulary, device) for case in start.cases}
        marks, fast = [time.time()], {}
        for case, one in given.items():
            fast[case] = captured(compiled(model, pass_, start.whole), one, start.cpu)
            marks.append(time.time())
        told: dict[str, Any] = {"ready": marks[-1], "marks": [begun, *marks]}
        if start.timed:
            told["cases"] = {
                str(case): _beside(start, model, fast[case], given[case]) for case in given
            }
        told["table"] = pass_.table() if pass_ is not None else ""
    return told


def _beside(start: Start, model: Any, fast: Any, given: Any) -> dict[str, float]:
    plain, expected = captured(compiled(model, None, start.whole), given, start.cpu)
    replay, logits = fast
    own = [median(samples) for samples in times_us([plain, replay], start.cpu)]
    figures = {"plain_us": own[0], "pass_us": own[1], "error": apart(logits, expected)}
    return figures | {"noise": apart(eager(model)(*given), expected)}


def apart(logits: Any, expected: Any) -> float:
    """The relative difference of two results."""
    return float((logits.float() - expected.float()).norm() / expected.float().norm())


def rank_main(start: Start, rank: int, world: int, rendezvous: str) -> None:
    """A process of a world on GPUs."""
    import torch

    launch.join(rank, world, rendezvous)
    told = serve(start, rank)
    if rank == 0:
        print("TOLD", json.dumps(told), flush=True)
    torch.cuda.synchronize()
    launch.leave()


def emulated_rank(workspace: Any, start: dict[str, Any]) -> dict[str, Any]:
    """A process of a rehearsal."""
    import torch._inductor.config as inductor

    import tftune

    inductor.force_disable_caches = True
    tftune.use(tftune.Selector())
    return serve(Start(**start), workspace.rank, workspace)


def run(start: Start, until: float) -> tuple[float, dict[str, Any]]:
    """Seconds of a new world from the model until all is captured, and what its first rank
    tells."""
    began = time.time()
    folder = Path(start.folder)
    places = {"TORCHINDUCTOR_CACHE_DIR": "torch", "TRITON_HOME": "triton", "TFTUNE_CACHE": "tftune"}
    variables = {name: str(folder / place) for name, place in places.items()}
    variables |= launch.NO_MULTICAST | ({} if start.shipped else {"TFTUNE_ARTIFACTS": "none"})
    if start.cpu:
        from tftune.kernels.comm import emulated

        os.environ.update(variables)
        told = emulated.run(2, emulated_rank, vars(start), timeout_s=600)[0]
        return told["ready"] - told["marks"][0], told
    import torch

    world = torch.cuda.device_count()
    with tempfile.TemporaryDirectory() as meeting:
        text = json.dumps(vars(start))
        command = [sys.executable, __file__, "--rank"]
        ranks = [
            subprocess.Popen(
                [*command, text, str(rank), str(world), f"{meeting}/meet"],
                env=os.environ | variables, text=True,
                stdout=subprocess.PIPE if rank == 0 else None,
            )
            for rank in range(world)
        ]  # fmt: skip
        try:
            out, _ = ranks[0].communicate(timeout=max(1.0, until - time.time()))
        finally:
            for process in ranks:
                process.kill()
    lines = [line for line in out.splitlines() if line.startswith("TOLD ")]
    if not lines:
        raise SystemExit(f"rank 0 of {start} told nothing; its last output:\n{out[-2000:]}")
    told = json.loads(lines[0].removeprefix("TOLD "))
    steps = [round(mark - began, 1) for mark in told["marks"]]
    how = "with" if start.with_pass else "without"
    print(f"{how} the pass, seconds until the model, the pass and each case: {steps}", flush=True)
    return told["ready"] - told["marks"][0], told


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Four starts of one model."""
    until = time.time() + options.seconds
    layers = 2 if options.cpu else options.layers
    with tempfile.TemporaryDirectory() as folder:
        kind = options.cpu, options.whole
        plain = Start(options.model, layers, f"{folder}/plain", False, False, *kind)
        ours = replace(plain, folder=f"{folder}/ours", with_pass=True)
        seconds = {}
        if options.shipped:
            seconds["shipped"], told = run(replace(ours, timed=True, shipped=True), until)
            return {"seconds": seconds, **told}
        if not options.ours:
            seconds["plain"], _ = run(plain, until)
            seconds["plain again"] = median(run(plain, until)[0] for _ in range(options.starts))
        seconds["first"], _ = run(ours, until)
        if not options.ours:
            shutil.copytree(f"{folder}/plain", f"{folder}/ours", dirs_exist_ok=True)
        again = [run(ours, until)[0] for _ in range(options.starts - 1)]
        last, told = run(replace(ours, timed=True), until)
        seconds["second"] = median([*again, last])
    return {"seconds": seconds, **told}


def report(found: dict[str, Any], model: str, target: str) -> str:
    """The table and the line of results."""
    cases, lines = found["cases"], []
    ratios = {name: one["plain_us"] / one["pass_us"] for name, one in cases.items()}
    for name, one in cases.items():
        times = f"{one['plain_us']:10.1f} {one['pass_us']:10.1f} {ratios[name]:7.3f}"
        lines.append(f"{name:14} {times}   {one['error']:.1e} {one['noise']:.1e}")
    lines += [f"{name:14} {seconds:.1f} s" for name, seconds in found["seconds"].items()]
    counted = {name: ratio for name, ratio in ratios.items() if name != "decode 200"}
    kinds = {
        kind: geometric_mean(ratio for name, ratio in counted.items() if name.startswith(kind))
        for kind in ("decode", "prefill")
    }
    names = "plain", "plain again", "first", "second"
    seconds = dict.fromkeys(names, nan) | found["seconds"]
    first, second = seconds["first"] - seconds["plain"], seconds["second"] - seconds["plain again"]
    lines.append(
        f"RESULT first_minute target={target} model={model} decode={kinds['decode']:.3f} "
        f"prefill={kinds['prefill']:.3f} worst={min(ratios.values()):.3f} first_s={first:.1f} "
        f"second_s={second:.1f}"
    )
    head = f"{'case':14} {'plain us':>10} {'pass us':>10} {'ratio':>7}   error   eager"
    return "\n".join([found["table"], head, *lines])


def main() -> int:
    if sys.argv[1:2] == ["--rank"]:
        text, rank, world, meeting = sys.argv[2:]
        rank_main(Start(**json.loads(text)), int(rank), int(world), meeting)
        return 0
    parser = launch.parser(__doc__)
    parser.add_argument("--model", choices=MODELS, default="llama3.1-8b")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=400, help="after which all is ended")
    parser.add_argument("--whole", action="store_true", help="compile the model as one graph")
    parser.add_argument("--ours", action="store_true", help="only the starts with the pass")
    parser.add_argument("--shipped", action="store_true", help="artifacts answer alone")
    parser.add_argument("--starts", type=int, default=1, help="that compile nothing, of each kind")
    parser.add_argument("--json", type=Path, help="also write what was measured, as JSON")
    parser.add_argument("--cpu", action="store_true", help="rehearse on two emulated ranks")
    options = parser.parse_args()
    measured = measure(options)
    from tftune.db.target import detect

    print(report(measured, options.model, "emulatedx2" if options.cpu else detect().name))
    if options.json:
        options.json.write_text(json.dumps(measured, indent=1) + "\n")
    cases = measured["cases"].values()
    return 0 if all(one["error"] < max(LIMIT, one["noise"]) for one in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
