"""tftune beside other libraries on this node's GPUs: BSP, tftune's choice, and the calls of torch
and Iris for the same operation, in the same rounds.

usage: python benchmarks/rivals.py --db node.db --out rivals.jsonl [--op gemm_reduce_scatter]
[--world 4] [--seconds 240] [--shapes SET]
       python benchmarks/rivals.py --show rivals.jsonl

Each result is checked against the reference before it is timed, and what the timed calls left is
checked again. torch's operator may round once for each source where A is sharded along K, since it
adds partial products; all others must round once. A rival that fails, hangs, cannot be captured or
does not take a shape is a row that says so. tftune's choice is the best final row of --db, else
what the shipped artifact selects. Every row is a line of JSON with all its samples; --show prints
the tables of such a file, without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any

import launch
import rival_calls
import speedup
from rival_rows import OP, Outcome, Row, show, show_file

import tftune
from tftune.cli.shapes_file import read_shapes
from tftune.db import target as machine
from tftune.db.store import Store
from tftune.db.target import Target
from tftune.db.trial import MODES, Failure, Measurement
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.registry import operation, payload_bytes
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.artifact import SHIPPED
from tftune.tuner.bench.sandbox import Broken, RankError, World, slowest
from tftune.tuner.bench.worker import WorldSpec

ROWS = "16+128+1024+8192"
SHAPES = {
    OP: f"paper:m={ROWS}; paper:shard=m,m={ROWS}",
    "gemm_reduce_scatter": "llama3-70b:m=128+512+1024+4096+8192",
    "gemm_all_reduce": "llama3-70b:m=1+8+128+256+1024+8192",
    "all_reduce": "engine:m=1+8+128+512+2048",
}
"""What is measured of each operation that has rivals, where --shapes says nothing."""
MEANINGS = {
    "bsp": "the fastest unfused form: the library's collective and the library's GEMM",
    "tftune": "what tftune chose for this shape and mode",
    "torch": "torch.ops.symm_mem.fused_all_gather_matmul, or fused_matmul_reduce_scatter",
    "torch_one_shot": "torch.ops.symm_mem.one_shot_all_reduce, x in symmetric memory",
    "torch_two_shot": "torch.ops.symm_mem.two_shot_all_reduce_, x copied to symmetric memory",
    "flashinfer": "flashinfer.comm.trtllm_allreduce_fusion, as vLLM 0.23 calls it",
    "iris": "iris.ops.all_gather_matmul, matmul_reduce_scatter or matmul_all_reduce, "
    "default configuration",
    "iris_buffer": "iris.ops.all_gather_matmul_hbm_buffer, its own choice of configuration",
}
PREPARE_S, CHECK_S, TIME_S = 60.0, 60.0, 60.0
"""Deadlines of one request, shorter where the budget ends sooner. A check compiles the rivals'
kernels; 22 rounds of Iris at M = 8192 take some 5 s."""
PROBE_ROUNDS = 5
"""What a candidate runs by itself; of BSP's forms the faster one then goes on."""
STRIKES = 2
"""A rival that has ended this many worlds in a mode and layout is not tried there again: a start
costs seconds."""
LEAST_S = 15.0
"""A shape and mode is not begun with less of the budget left."""

Pick = Callable[[Shape, str], Config | Failure]


class Bench:
    """A world of ranks that serve rivals, started again after what broke it; no request outlasts
    `until` (of time.monotonic)."""

    def __init__(
        self,
        spec: WorldSpec,
        until: float,
        serve: Callable[..., None] = rival_calls.serve,
        chip: Chip | None = None,
    ) -> None:
        """`chip`: the ranks' GPU, which says what forms of BSP there are; None for emulated
        ranks."""
        self.chip = chip
        self._world, self._until = World(spec, serve=serve), until
        self._errors: dict[tuple[Shape, Config], float] = {}
        self._strikes: dict[tuple[Any, ...], list[Failure]] = defaultdict(list)

    def alone(self, shape: Shape, config: Config, mode: str) -> Outcome:
        """Check a config, time it by itself for a few rounds, and check what the timed calls
        left."""
        before = self._strikes[config, mode, shape.op, shape.layout]
        rival = rival_calls.rivals_of(shape.op).get(config.variant)
        if rival and mode == "graph" and not rival.captured:
            return Failure("invalid", "each call waits on the host: no graph can hold it")
        roundings = rival.roundings(shape) if rival else 1
        if len(before) >= STRIKES:
            return Failure(
                before[-1].kind,
                f"not tried: it ended {len(before)} worlds in mode {mode}, the last time so: "
                f"{before[-1].text}",
            )
        try:
            self._ask("prepare", (shape, config), PREPARE_S)
            if (shape, config) not in self._errors:
                checked = self._ask("check", (shape, config), CHECK_S)
                self._errors[shape, config] = self._right(checked, roundings)
            (samples,) = self._times(shape, [config], mode, PROBE_ROUNDS)
            self._right(self._ask("verify", (shape,), CHECK_S), roundings)
        except RankError as error:
            kind = "invalid" if error.name == "NotImplementedError" else "compile"
            return Failure(kind, str(error)[:500])
        except Broken as broken:
            before.append(broken.failure)
            return broken.failure
        return Measurement(samples, check_error=self._errors[shape, config])

    def together(
        self, shape: Shape, configs: Sequence[Config], mode: str, rounds: int
    ) -> list[Measurement]:
        """All of them in the same rounds, the first being BSP. Raises Broken."""
        for config in configs:  # the world may be another than that of its check
            self._ask("prepare", (shape, config), PREPARE_S)
        times = self._times(shape, configs, mode, rounds)
        return [
            Measurement(us, times[0], self._errors[shape, config])
            for us, config in zip(times, configs, strict=True)
        ]

    def _times(
        self, shape: Shape, configs: Sequence[Config], mode: str, rounds: int
    ) -> list[tuple[float, ...]]:
        replies = self._ask("time", (shape, list(configs), mode, rounds), TIME_S)
        return [slowest([samples[index] for samples in replies]) for index in range(len(configs))]

    def _right(self, replies: list[tuple[float, float]], roundings: int) -> float:
        """The largest error over ranks; a wrong result ends the world, since flags may differ
        between ranks. Raises Broken."""
        worst, tolerance = max(error for error, _ in replies), roundings * replies[0][1]
        if not worst <= tolerance:
            self.close()
            raise Broken("wrong", f"relative error {worst:.3g} is above {tolerance:.3g}")
        return worst

    def _ask(self, method: str, arguments: tuple[Any, ...], deadline_s: float) -> list[Any]:
        if not self._world.alive:
            self._world.start()
        left = self._until - time.monotonic()
        try:
            return self._world.request(method, arguments, max(0.0, min(deadline_s, left)))
        except Broken as broken:
            if time.monotonic() < self._until:
                raise
            # Nobody's fault.
            raise Broken("hang", f"the time of the run was over during {method}") from broken

    def close(self) -> None:
        self._world.kill()


def compare(
    bench: Bench,
    shape: Shape,
    mode: str,
    pick: Config | Failure,
    names: Sequence[str],
    rounds: int,
) -> list[Row]:
    """BSP's best form, tftune's pick and these rivals at one shape: each alone first, then what is
    right and runs in the same rounds."""
    defaults = operation(shape.op).space.defaults(shape, bench.chip)
    alone = {c: bench.alone(shape, c, mode) for c in defaults if c.variant == "bsp"}
    times = {form: us.median_us for form, us in alone.items() if isinstance(us, Measurement)}
    bsp = min(alone, key=lambda form: times.get(form, inf))
    configs: dict[str, Config | Failure] = {"bsp": bsp, "tftune": pick}
    configs |= {name: Config(name) for name in names}
    if isinstance(failed := alone[bsp], Failure):
        beside = Failure(failed.kind, f"BSP beside it failed: {failed.text}")
        outcomes: dict[str, Outcome] = dict.fromkeys(configs, beside) | {"bsp": failed}
    else:
        outcomes = {
            name: c if isinstance(c, Failure) else alone.get(c) or bench.alone(shape, c, mode)
            for name, c in configs.items()
        }
        right = {name: configs[name] for name, f in outcomes.items() if isinstance(f, Measurement)}
        outcomes |= _same_rounds(bench, shape, mode, right, rounds)
    return [
        Row(shape, mode, name, None if isinstance(c, Failure) else c, outcomes[name])
        for name, c in configs.items()
    ]


def _same_rounds(
    bench: Bench, shape: Shape, mode: str, configs: dict[str, Any], rounds: int
) -> dict[str, Outcome]:
    """The outcome of each in the same rounds; where the rivals break the world, BSP and tftune are
    measured without them."""
    ours = {name: config for name, config in configs.items() if name in ("bsp", "tftune")}
    outcomes: dict[str, Outcome] = {}
    for part in (configs, ours):
        different = list(dict.fromkeys(part.values()))
        try:
            together = bench.together(shape, different, mode, rounds)
            times = dict(zip(different, together, strict=True))
            return outcomes | {name: times[config] for name, config in part.items()}
        except Broken as broken:
            text = f"beside the others: {broken.failure.text}"
            outcomes = dict.fromkeys(configs, Failure(broken.failure.kind, text))
    return outcomes


def measure(
    bench: Bench,
    shapes: Iterable[Shape],
    modes: Sequence[str],
    pick: Pick,
    names: Sequence[str],
    rounds: int,
    until: float,
) -> Iterator[Row]:
    """The rows of every shape and mode, as each is measured; where the budget is spent, rows that
    say so."""
    for shape in shapes:
        for mode in modes:
            if (left := until - time.monotonic()) < LEAST_S:
                text = (
                    f"not measured: {max(0.0, left):.0f} s of the budget were left, and "
                    f"{LEAST_S:.0f} are needed; give more --seconds"
                )
                late = Failure("invalid", text)
                yield from (Row(shape, mode, n, None, late) for n in ("bsp", "tftune", *names))
            else:
                yield from compare(bench, shape, mode, pick(shape, mode), names, rounds)


def picks(db: Path | None, target: Target, op: str = OP) -> Pick:
    """tftune's choice: the winner of the final rows of a database, else what the artifact shipped
    for this target selects; raises ValueError where there is neither."""
    if db is None:
        shipped = SHIPPED / f"{op}__{target.name}.json"
        if not shipped.exists():
            raise ValueError(
                f"no artifact of {op} is shipped for {target.name}; search here, and give --db"
            )
        selector = tftune.load(shipped, target.name)
        return lambda shape, mode: selector.select(shape, mode).config
    with Store.open(db, write=False) as store:
        trials = store.trials(op=op, target=target.name, bench="node")
    lines = ((line, mode) for mode in MODES for line in speedup.lines(trials, mode))
    winners = {(line.shape, mode): line.winner.config for line, mode in lines}
    return lambda shape, mode: (
        winners.get((shape, mode))
        or Failure("invalid", f"{db} has no final row of {shape} in mode {mode}")
    )


def default_fused(shape: Shape, mode: str) -> Config:
    """The choice where nothing was measured, on emulated ranks: push, else the last default."""
    *_, last = defaults = operation(shape.op).space.defaults(shape, None)
    return next((config for config in defaults if config.variant == "push"), last)


def run(options: argparse.Namespace) -> None:
    """Measure, writing each row as it comes, and show what was found."""
    os.environ.update(launch.NO_MULTICAST)  # the ranks inherit it
    until = time.monotonic() + options.seconds
    target = Target.parse(f"h200x{options.world}") if options.emulated else machine.detect()
    known, words = operation(options.op), [options.shapes or SHAPES[options.op]]
    names = options.rivals or list(rival_calls.rivals_of(options.op))
    shapes: list[Any] = read_shapes(known, words, options.world or target.gpus)
    if len(worlds := {shape.world for shape in shapes}) > 1 or max(worlds) > target.gpus:
        raise ValueError(
            f"the shapes have worlds {sorted(worlds)}; give those of one, of at most the "
            f"{target.gpus} GPUs of {target}"
        )
    pick = default_fused if options.emulated else picks(options.db, target, options.op)
    # Emulated times say nothing of speed.
    where = f"emulated-{target}" if options.emulated else target.name
    sizes = payload_bytes(*shapes), target.chip.cache_bytes
    spec = WorldSpec(Path(), shapes[0].world, options.emulated, *sizes)
    bench, rows = Bench(spec, until, chip=None if options.emulated else target.chip), []
    with open(options.out, "w", encoding="utf-8") as file:
        head = {"target": where, "started": datetime.now(UTC).isoformat()}
        head |= {"build": machine.build(), "clocks": machine.clocks()}
        print(json.dumps({"run": head}), file=file, flush=True)
        try:
            for row in measure(bench, shapes, MODES, pick, names, options.rounds, until):
                print(row.to_json(), file=file, flush=True)
                print(str(row)[:200], file=sys.stderr, flush=True)
                rows.append(row)
        finally:
            bench.close()
    show(rows, where)


def main(arguments: Sequence[str] | None = None) -> None:
    meanings = "; ".join(f"{name}: {meaning}" for name, meaning in MEANINGS.items())
    parser = launch.parser(__doc__, epilog=meanings)
    add = parser.add_argument
    add("--db", type=Path, help="database with final rows of this machine")
    add("--out", type=Path, default=Path("rivals.jsonl"), help="where the rows go")
    add("--world", type=int, help="ranks of the shapes; default: all GPUs")
    add("--op", default=OP, choices=SHAPES, help="the operation")
    usual = "; ".join(f"{op}: {words}" for op, words in SHAPES.items())
    add("--shapes", help=f"as in tftune search; default: {usual}")
    add("--seconds", type=float, default=240, help="wall-clock time of the whole run")
    add("--rounds", type=int, default=21, help="rounds that the candidates share")
    add("--rivals", nargs="+", help="only these; default: all of the operation")
    add("--show", type=Path, metavar="FILE", help="print the tables of a file; measure nothing")
    add("--emulated", action="store_true", help="ranks without GPUs: tries the script, not the "
        "speed; needs --world")  # fmt: skip
    options = parser.parse_args(arguments)
    try:
        show_file(options.show) if options.show else run(options)
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
