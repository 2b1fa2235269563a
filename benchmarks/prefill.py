"""flash_prefill on this node beside torch's attention by each backend, within a wall-clock budget.
The same command goes on where it stopped.

usage: python benchmarks/prefill.py prefill.db --seconds 500 [--pool 60] [--show]

It runs one `tftune search flash_prefill` over the shapes below, captured, and prints a table of
what the database holds. `--show` prints the command and the table, and searches nothing. Times are
microseconds; TFLOP/s count pairs of tokens that are not masked; the limit is computed.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path

from tftune.db.evidence import counting
from tftune.db.store import Store
from tftune.db.target import Target
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.kernels.flash_prefill.limit import limit
from tftune.kernels.flash_prefill.mapping import MAPPINGS
from tftune.kernels.flash_prefill.space import BACKENDS
from tftune.models.dataset import Dataset, load

OP, MODE = "flash_prefill", "graph"
SHAPES = (
    "batch=1,q_heads=32,kv_heads=8,head_dim=128,seq_len=8192",
    "batch=1,q_heads=64,kv_heads=8,head_dim=128,seq_len=8192",
    "batch=1,q_heads=8,kv_heads=1,head_dim=128,seq_len=8192",
    "batch=1,q_heads=16,kv_heads=1,head_dim=128,seq_len=8192",
    "batch=4,q_heads=32,kv_heads=8,head_dim=128,seq_len=2048",
    "batch=1,q_heads=32,kv_heads=8,head_dim=128,seq_len=1024",
    "batch=1,q_heads=16,kv_heads=1,head_dim=128,seq_len=32768",
    "batch=1,q_heads=28,kv_heads=4,head_dim=128,seq_len=5000",
    "batch=2,q_heads=16,kv_heads=16,head_dim=128,seq_len=8192,dtype=fp16,causal=no",
    "batch=1,q_heads=128,kv_heads=128,head_dim=128,seq_len=8192,dtype=fp16,causal=no",
    "batch=1,q_heads=64,kv_heads=8,head_dim=128,seq_len=8192,dtype=fp16,causal=no",
    "batch=2,q_heads=32,kv_heads=32,head_dim=64,seq_len=8192,dtype=fp16,causal=no",
)
"""Llama 3's prefills on one GPU and on an eighth of its heads, an odd one, and the paper's kind."""
RESERVE_S = 20
"""Of the seconds, for the search's processes to start and end."""


@dataclass(frozen=True)
class Line:
    """What was measured of one shape."""

    shape: Shape
    backends_us: dict[str, float]
    config: Config
    us: float
    mappings_us: dict[str, float]
    """Of the fastest config of each mapping."""

    @property
    def tflops(self) -> float:
        return float(self.shape.flops / self.us / 1e6)  # type: ignore[attr-defined]

    def over(self, backend: str) -> float | None:
        """A backend's time over the kernel's."""
        us = self.backends_us.get(backend)
        return None if us is None else us / self.us

    @property
    def over_strongest(self) -> float:
        return min(self.backends_us.values()) / self.us


def lines(data: Dataset) -> Iterator[Line]:
    """A line for each shape that has a time of the kernel and of the library."""
    for shape in data.shapes:
        times = {config: data.time_us(shape, config) for config in data.outcomes[shape]}
        known = {config: us for config, us in times.items() if us is not None}
        kernels = {config: us for config, us in known.items() if config.variant == "flash"}
        backends = {c["backend"]: us for c, us in known.items() if c.variant == "bsp"}
        if not kernels or not backends:
            continue
        best = min(kernels, key=lambda config: kernels[config])
        mappings = {
            name: min(found)
            for name in MAPPINGS
            if (found := [us for config, us in kernels.items() if config["mapping"] == name])
        }
        yield Line(shape, backends, best, kernels[best], mappings)


def table(found: Sequence[Line], chip: Chip) -> Iterator[str]:
    """Markdown: microseconds of each backend and of the kernel, ratios, rates, the mappings."""
    heads = [*BACKENDS, "kernel", "TFLOP/s", "flash / kernel", "strongest / kernel"]
    heads += ["limit / kernel (computed)", "block-first / head-first", "config"]
    yield f"| shape | {' | '.join(heads)} |"
    yield "|---" * (len(heads) + 1) + "|"
    for line in found:
        times = [line.backends_us.get(name) for name in BACKENDS]
        cells = [*(_number(us, 1) for us in (*times, line.us)), _number(line.tflops, 0)]
        cells += [_number(line.over("flash"), 2), _number(line.over_strongest, 2)]
        cells.append(_number(limit(line.shape, chip).us / line.us, 2))  # type: ignore[arg-type]
        cells.append(_number(_ratio(line.mappings_us), 3))
        yield f"| {line.shape} | {' | '.join(cells)} | {line.config} |"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _ratio(mappings_us: dict[str, float]) -> float | None:
    """The best time of block-first over that of head-first."""
    one, other = (mappings_us.get(f"naive_{name}_first") for name in ("block", "head"))
    return None if one is None or other is None else one / other


def geomean(values: Sequence[float]) -> float:
    """nan where there are none."""
    return exp(sum(map(log, values)) / len(values)) if values else float("nan")


def result(found: Sequence[Line], target: str) -> str:
    """The RESULT line: geometric means of the backends' times over the kernel's."""
    flash = [ratio for line in found if (ratio := line.over("flash")) is not None]
    cudnn = [ratio for line in found if (ratio := line.over("cudnn")) is not None]
    strongest = [line.over_strongest for line in found]
    return (
        f"RESULT prefill target={target} shapes={len(found)} "
        f"flash_over_kernel={geomean(flash):.3f} cudnn_over_kernel={geomean(cudnn):.3f} "
        f"strongest_over_kernel={geomean(strongest):.3f} "
        f"least_flash_over_kernel={min(flash, default=float('nan')):.3f}"
    )


def search(db: str, seconds: float, pool: int) -> list[str]:
    """The command line of the search."""
    budget = max(1, int(seconds - RESERVE_S))
    shapes = ";".join(SHAPES)
    command = [sys.executable, "-m", "tftune", "search", OP, "--shapes", shapes, "--mode", MODE]
    return [*command, "--pool", str(pool), "--budget", f"{budget}s", "--db", db]


def report(db: str) -> str:
    """The table and the RESULT line of each target in the database, or that there is none."""
    with Store.open(Path(db), write=False) as store:
        trials = counting(store.trials(op=OP), store.runs())
    parts = []
    for target in sorted({trial.target for trial in trials if trial.bench == "node"}):
        data = load(trials, OP, target, MODE, "node")
        found = list(lines(data))
        chip = Target.parse(target).chip
        parts += [f"## {target}, mode {MODE}, measured", "", *table(found, chip), ""]
        parts.append(result(found, target))
    return "\n".join(parts) or f"{db} holds no row of {OP} that a GPU measured"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("db", help="database that the rows go to; made if it is not there")
    parser.add_argument("--seconds", type=float, default=500, help="wall-clock time of the search")
    parser.add_argument("--pool", type=int, default=60, help="configs of the kernel, each shape")
    parser.add_argument("--show", action="store_true", help="search nothing")
    options = parser.parse_args(arguments)
    command = search(options.db, options.seconds, options.pool)
    print(shlex.join(command), flush=True)
    code = 0 if options.show else subprocess.run(command, check=False).returncode
    if Path(options.db).exists():
        print(report(options.db))
    return code


if __name__ == "__main__":
    sys.exit(main())
