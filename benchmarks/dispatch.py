"""What one selection costs on the host: how long select_kernel takes, and importing tftune. No GPU,
no library.

usage: python benchmarks/dispatch.py [--artifact PATH] [--calls 20000]

memo: a shape that was built before and equals one that was asked for. tree: the leaf of a shape,
without looking for an earlier answer. fresh: building a shape that equals one asked for, and
asking. p99: of all calls of these three kinds, the slowest percent apart. first: building a shape
never asked for, of a family that was measured, and asking: estimated from the sizes beside it.
other: the same for a family that was never measured, by the tree and its formulas, or by the rule
that is shipped instead. Of both, shapes that fill the same tiles share what is estimated from
measured shapes around them. Each call is timed alone; the time of an empty call is taken off.
import: the median of fresh processes. Microseconds, of this CPU; other programs on it disturb the
99th percentile.
"""

from __future__ import annotations

import itertools
import math
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import launch

import tftune
from tftune.kernels.core.registry import operation
from tftune.models.artifact import SHIPPED, Artifact, read_artifact
from tftune.models.layout import LayoutModel
from tftune.models.selector import Selector
from tftune.models.tree.codegen import compiled

IMPORT = (
    "import time; t = time.perf_counter(); import tftune; print(1e3 * (time.perf_counter() - t))"
)
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
    """Samples of each kind of call, without those of an empty one; shapes within what the artifact
    answers."""
    found = read_artifact(artifact)
    # What is stale answers BSP, by a longer way.
    tftune.use(Selector(found, allow_modelled=True, check_source=False))
    model = measured_most(found)
    make, family, root = operation(found.op).shape, longest(model), model.root
    if root is None:
        raise SystemExit(f"{artifact} has no tree for mode graph; name another with --artifact")
    count = calls + WARM
    never = shapes_of(model, family, count)
    others = shapes_of(model, unmeasured(model, family), count)
    sizes = list(itertools.islice(itertools.cycle(never[:: max(1, len(never) // 512)]), count))

    def fresh(size: dict[str, Any]) -> object:
        return tftune.select_kernel(make(**size))

    first, other = timed(fresh, never), timed(fresh, others)
    samples = {
        "memo": timed(tftune.select_kernel, [make(**size) for size in sizes]),
        "tree": timed(compiled(found.op, root), [make(**size) for size in sizes]),
        "fresh": timed(fresh, sizes),
        "first": first,
        "other": other,
    }
    empty = statistics.median(timed(lambda size: None, sizes))
    return {name: [sample - empty for sample in found] for name, found in samples.items()}


Family = tuple[int, ...]
"""Sizes of a shape, the one that grows being 0."""


def measured_most(artifact: Artifact) -> LayoutModel:
    """The layout in mode graph with most shapes, among those that answer for other families if any
    does."""
    layouts = artifact.modes["graph"].layouts.values()
    return max(layouts, key=lambda model: (model.spans, len(model.known)))


def families(model: LayoutModel) -> list[Family]:
    """The family of each measured shape."""
    place = operation(model.op).shape.coordinates().index(operation(model.op).shape.SIZE)
    return [(*known.sizes[:place], 0, *known.sizes[place + 1 :]) for known in model.known]


def longest(model: LayoutModel) -> Family:
    """The family that was measured at most sizes."""
    return max(measured := families(model), key=measured.count)


def unmeasured(model: LayoutModel, family: Family) -> Family:
    """A family that was not measured: its first size lies in the widest gap of those that were, or
    above the last where there is none."""
    shape = operation(model.op).shape
    place = next(place for place, name in enumerate(shape.coordinates()) if name != shape.SIZE)
    seen = sorted({known.sizes[place] for known in model.known})
    gaps = [ends for ends in itertools.pairwise(seen) if ends[1] - ends[0] > 1]
    above = (seen[-1], 3 * seen[-1])
    low, high = max(gaps, key=lambda ends: ends[1] / ends[0], default=above)
    return (*family[:place], (low + high) // 2, *family[place + 1 :])


def shapes_of(model: LayoutModel, family: Family, count: int) -> list[dict[str, Any]]:
    """Fields of at most so many shapes of a family, evenly from the least to the greatest size that
    was measured of it; of any, where it was not."""
    shape = operation(model.op).shape
    place = shape.coordinates().index(shape.SIZE)
    every_size = [known.sizes[place] for known in model.known]
    own = [size for size, its in zip(every_size, families(model), strict=True) if its == family]
    seen = own or every_size
    fixed = shape.named(model.layout)
    fixed |= dict(zip(shape.coordinates(), family, strict=True))
    step = math.lcm(*(fixed[name] for name in ("world", "page_size") if fixed.get(name)))
    least, most = min(seen), max(seen)
    apart = step * max(1, (most - least) // step // count)
    every = range(-(-least // step) * step, most + 1, apart)
    return [fixed | {shape.SIZE: size} for size in every][:count]


def cpu() -> str:
    """The model's name, where the system tells it."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def import_ms(processes: int = 9) -> float:
    """The median over fresh processes."""
    return statistics.median(
        float(subprocess.check_output([sys.executable, "-c", IMPORT], text=True))
        for _ in range(processes)
    )


def percentile(samples: Sequence[float], share: float) -> float:
    return sorted(samples)[int(share * (len(samples) - 1))]


def result(samples: dict[str, list[float]], import_ms: float) -> str:
    names = ("memo", "tree", "fresh", "first", "other")
    memo_us, tree_us, fresh_us, first_us, other_us = (
        statistics.median(samples[name]) for name in names
    )
    p99_us = percentile([*samples["memo"], *samples["tree"], *samples["fresh"]], 0.99)
    return (
        f"RESULT dispatch {memo_us=:.2f} {tree_us=:.2f} {fresh_us=:.2f} {p99_us=:.2f} "
        f"{import_ms=:.1f} {first_us=:.2f} {other_us=:.2f}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = launch.parser(__doc__)
    parser.add_argument("--artifact", type=Path, default=SHIPPED / "all_gather_gemm__h200x2.json")
    parser.add_argument("--calls", type=int, default=20_000)
    options = parser.parse_args(arguments)
    samples = series(options.artifact, options.calls)
    for name, us in samples.items():
        p50, p99 = statistics.median(us), percentile(us, 0.99)
        print(f"{name:6} p50 {p50:6.2f} us   p99 {p99:6.2f} us   {len(us)} calls")
    size = options.artifact.stat().st_size
    print(f"{cpu()}, Python {platform.python_version()}; {size / 1e3:.0f} KB")
    print(result(samples, import_ms()))


if __name__ == "__main__":
    main()
