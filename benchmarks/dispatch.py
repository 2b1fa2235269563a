"""What one selection costs on the host: how long select_kernel takes, and importing tftune. No GPU, no library.

usage: python benchmarks/dispatch.py [--artifact PATH] [--calls 20000]

memo: a shape that was built before and equals one that was asked for. tree: the leaf of a shape, without looking for an earlier answer.
fresh: building a shape that equals one asked for, and asking. p99: of all calls of these three kinds, the slowest percent apart.
first: building a shape never asked for, and asking; its config is held against the rules. Each call is timed alone; the time of an empty
call is taken off. import: the median of fresh processes. Microseconds, of this CPU; other programs on it disturb the 99th percentile.
"""

from __future__ import annotations

import argparse
import itertools
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import tftune
from tftune.kernels.registry import operation
from tftune.models.plain import compiled
from tftune.models.selector import SHIPPED, Selector, read_artifact

IMPORT = "import time; t = time.perf_counter(); import tftune; print(1e3 * (time.perf_counter() - t))"
WARM = 200
"""Calls before the clock counts: the interpreter specialises what runs often."""


def timed(call: Callable[[Any], object], arguments: Iterable[Any]) -> list[float]:
    """Microseconds of each call."""
    clock, samples = time.perf_counter_ns, []
    for argument in arguments:
        start = clock()
        call(argument)
        samples.append((clock() - start) / 1e3)
    return samples[WARM:]


def series(artifact: Path, calls: int) -> dict[str, list[float]]:
    """Samples of each kind of call, without those of an empty one; shapes of M within what the artifact answers."""
    found = read_artifact(artifact)
    tftune._install(Selector(found, allow_modelled=True, check_source=False))  # what is stale answers BSP, by a longer way
    tree = found.trees["graph"]
    make, fields = operation(found.op).shape, {name: seen[0] if isinstance(seen[0], str) else seen[-1] for name, seen in tree.measured}
    largest = int(fields["m"])
    sizes = [{**fields, "m": m} for m in itertools.islice(itertools.cycle(range(1, largest + 1, max(1, largest // 512))), calls + WARM)]
    never = [{**fields, "m": m} for m in range(1, min(largest, calls + WARM))]
    fresh: Callable[[Any], object] = lambda size: tftune.select_kernel(make(**size))  # noqa: E731
    first = timed(fresh, never)
    samples = {
        "memo": timed(tftune.select_kernel, [make(**size) for size in sizes]),
        "tree": timed(compiled(tree), [make(**size) for size in sizes]),
        "fresh": timed(fresh, sizes),
        "first": first,
    }
    empty = statistics.median(timed(lambda size: None, sizes))
    return {name: [sample - empty for sample in found] for name, found in samples.items()}


def cpu() -> str:
    """The model's name, where the system tells it."""
    told = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return next((line.partition(":")[2].strip() for line in told.splitlines() if line.startswith("model name")), platform.machine())


def import_ms(processes: int = 9) -> float:
    """The median over fresh processes."""
    return statistics.median(float(subprocess.check_output([sys.executable, "-c", IMPORT], text=True)) for _ in range(processes))


def percentile(samples: Sequence[float], share: float) -> float:
    return sorted(samples)[int(share * (len(samples) - 1))]


def result(samples: dict[str, list[float]], import_ms: float) -> str:
    memo_us, tree_us, fresh_us, first_us = (statistics.median(samples[name]) for name in ("memo", "tree", "fresh", "first"))
    p99_us = percentile([*samples["memo"], *samples["tree"], *samples["fresh"]], 0.99)
    return f"RESULT dispatch {memo_us=:.2f} {tree_us=:.2f} {fresh_us=:.2f} {p99_us=:.2f} {import_ms=:.1f} {first_us=:.2f}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--artifact", type=Path, default=min(SHIPPED.glob("*.json")))
    parser.add_argument("--calls", type=int, default=20_000)
    options = parser.parse_args(arguments)
    samples = series(options.artifact, options.calls)
    for name, found in samples.items():
        print(f"{name:6} p50 {statistics.median(found):6.2f} us   p99 {percentile(found, 0.99):6.2f} us   {len(found)} calls")
    print(f"{cpu()}, Python {platform.python_version()}; {options.artifact.stat().st_size / 1e3:.0f} KB")
    print(result(samples, import_ms()))


if __name__ == "__main__":
    main()
