"""What docs/results.md shows between its markers: tables of the committed rows, current ones only.
`python benchmarks/speedup.py --page` prints it, and a test holds the two together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import product
from math import inf
from statistics import geometric_mean

import limit
import speedup

from tftune.db.target import Target
from tftune.db.trial import Measurement, Trial
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape, size_of
from tftune.kernels.core.space import Config
from tftune.pipeline.places import forms

MACHINES = ("h200x8", "h200x4", "h200x2")
ENGINE_MACHINES = ("h100x2", "h200x2", "h200x4", "h200x8")
ENGINE_TOKENS = (1, 16, 64, 256, 1024, 4096)
SPANS = ((1, 16), (17, 64), (65, 256), (257, 1024), (1025, 8192))
"""Tokens that a column of the table of all models holds, the first and the last."""
CONTEXTS = ((1, 1024), (1025, 4096), (4097, 32768))
BATCHES = ((1, 1), (4, 4), (16, 64))
BYTES = {"to 64 KB": 1 << 16, "to 1 MB": 1 << 20, "to 4 MB": 1 << 22, "to 16 MB": 1 << 24,
         "to 64 MB": 1 << 26, "beyond": inf}  # fmt: skip
OF_FORMS = """\
All-reduces by bytes of x, captured, bf16, of the runs in which two forms of BSP or more were timed
at a shape. A cell has the form that is mostly the fastest, and at how many shapes it is. Then BSP's
time over that of the fastest kernel here, a geometric mean, and at how many shapes the kernel is
faster by more than 1 %. A column begins where the one before it ends. `library` is NCCL, the others
are torch's. With `rms`, a norm follows BSP's all-reduce. vLLM's own [was measured
apart](engines.md#an-engines-own-all-reduce)."""
ENGINE_OPS = ("all_gather_gemm", "gemm_reduce_scatter", "gemm_all_reduce", "all_reduce")
MODES = {"graph": "captured in a CUDA graph", "eager": "one call from an idle queue"}
PARTS = {
    "kv_below_100_us": "reading the cache takes less than 100 us",
    "kv_from_100_us": "reading the cache takes 100 us or more",
}
OF_MODELS = """\
Captured, bf16, B `[N, K]`, tokens along M: geometric mean of BSP / fastest; at how many shapes a
kernel is faster by more than 1 %, of those measured. `benchmarks/rows.py` names the ten models.
Most shapes were measured once, with few configs. A search at each shape gave 2 to 15 at 1,041
shapes of 4x H200. On 2x H200 it gave 13 to 24 at 288 shapes of `gemm_reduce_scatter`, 9 to 23 at
296 of `gemm_all_reduce`, and 3 to 15 at 393 of `all_reduce`. Random shapes of
`benchmarks/in_place.py` are among those of two GPUs.
Eight GPUs ran three models alone, Llama 3 70B and 405B and Qwen2.5 72B, as four did for decoding
and merging. One form of BSP was timed, though others are possible, at {} shapes of 2x H100,
{} of 2x H200, {} of 4x H200 and {} of 8x H200. One of those may be faster. `push_ce` of
`gemm_all_reduce` took part at nearly all shapes from M = 1000 on; with `last=stores` on 2x H200.
`vendor`, which gains at fewer tokens, took part on 2x H100 and on 2x and 4x H200. `vendor_ce` of
`gemm_reduce_scatter` took part on 2x H200 alone."""
REDUCTIONS = ("all_reduce", "gemm_reduce_scatter", "gemm_all_reduce")
ENGINE_HEAD = ("machine", "operation", "sizes")
HEAD = ["machine", "shapes", "number", "graph", "fused wins", "eager", "fused wins"]


@cache
def committed(target: str, op: str) -> list[Trial]:
    """The rows that count: each file is read once for all tables."""
    return speedup.read(target, op)


@cache
def page() -> str:
    gemm = {target: committed(target, "all_gather_gemm") for target in MACHINES}
    decode = {target: committed(target, "flash_decode") for target in MACHINES}
    return "\n\n".join(
        [
            "## The layout of serving engines: layers of public models",
            OF_MODELS.format(*map(beside_one_form, ENGINE_MACHINES)),
            of_models(ENGINE_OPS, SPANS),
            "Decoding over a cache of pages, by tokens of a sequence:",
            of_models(["flash_decode"], CONTEXTS),
            "Merging, by batch:",
            of_models(["merge_attention"], BATCHES),
            OF_FORMS,
            text([["machine", "norm", *BYTES], *form_rows()]),
            "## The layout of serving engines: layer by layer",
            "Captured, bf16, B `[N, K]`, tokens along M. BSP / fastest (us of the fastest).",
            text([[*ENGINE_HEAD, *(f"M = {m}" for m in ENGINE_TOKENS)], *engine_rows()]),
            "## all_gather_gemm: sets of shapes",
            text([HEAD, *(row for target in MACHINES for row in set_rows(gemm[target], target))]),
            "## all_gather_gemm: layouts at N = 3584, K = 8192",
            text([HEAD, *(row for target in MACHINES for row in layouts(gemm[target], target))]),
            "## all_gather_gemm: shape by shape, 8x H200",
            *details(gemm["h200x8"]),
            "## all_gather_gemm: how near to the limit, 8x H200",
            *limits(gemm["h200x8"]),
            "## flash_decode: sets of shapes",
            text([HEAD, *(row for target in MACHINES for row in set_rows(decode[target], target))]),
            "## flash_decode: shape by shape, 8x H200",
            *decodes(decode["h200x8"]),
            *(part for op in REDUCTIONS for part in reduction(op)),
        ]
    )


def span(bounds: tuple[int, int]) -> str:
    """A column's title."""
    first, last = bounds
    return f"{first}" if first == last else f"{first} to {last}"


def of_models(ops: Sequence[str], spans: Sequence[tuple[int, int]]) -> str:
    """A table of all shapes of operations, by their size."""
    rows = [["machine", "operation", *map(span, spans)]]
    for target, op in product(ENGINE_MACHINES, ops):
        gains = [
            f"{geometric_mean(some):.2f}; {faster(some)} of {len(some)}" if some else "-"
            for some in in_spans(target, op, spans)
        ]
        rows.append([title(target), f"`{op}`", *gains])
    return text(rows)


def in_spans(target: str, op: str, spans: Sequence[tuple[int, int]]) -> Iterator[list[float]]:
    """BSP / fastest of the shapes of each span; of each shape its last rows count."""
    rows = {
        row.shape: row
        for trials in speedup.groups(engine_trials(target, op)).values()
        for stage in ("search", "final")
        for row in speedup.lines(trials, "graph", stage)
    }
    for first, last in spans:
        some = (row for s, row in rows.items() if first <= size_of(s) <= last)
        yield list(map(gain_of, some))


def faster(some: Sequence[float]) -> int:
    return sum(gain > 1.01 for gain in some)


def engine_results(target: str, op: str) -> Iterator[str]:
    """A RESULT line for each span of sizes in the layout of engines that has rows."""
    spans = {"flash_decode": CONTEXTS, "merge_attention": BATCHES}.get(op, SPANS)
    for (first, last), some in zip(spans, in_spans(target, op, spans), strict=True):
        if some:
            size = f"{operation(op).shape.SIZE}={first}..{last}"
            geomean, wins = geometric_mean(some), f"faster={faster(some)} of={len(some)}"
            yield f"RESULT speedup {op=!s} {target=!s} layout=engine {size} {geomean=:.3f} {wins}"


@cache
def engine_trials(target: str, op: str) -> list[Trial]:
    """Rows in the layout of engines: one machine has others, too."""
    return [trial for trial in committed(target, op) if engine_layout(trial.shape)]


@cache
def engine_layout(shape: Shape) -> bool:
    fields = shape.to_dict()
    layout = {"shard": "m", "b_layout": "nk", "output": "heads", "dtype": "bf16"}
    paged = fields.get("page_size", 1) > 0
    return paged and all(fields.get(name, value) == value for name, value in layout.items())


def beside_one_form(target: str) -> int:
    """Shapes with a fused row and one form of BSP, where others are possible."""
    chip, count = Target.parse(target).chip, 0
    for op in (*ENGINE_OPS, "flash_decode"):
        timed: dict[Shape, set[Config]] = defaultdict(set)
        for trial in engine_trials(target, op):
            if isinstance(trial.outcome, Measurement) and trial.mode == "graph":
                timed[trial.shape].add(trial.config)
        for shape, configs in timed.items():
            bsp = sum(config.variant == "bsp" for config in configs)
            count += bsp == 1 < min(len(configs), len(forms(shape, chip)))
    return count


def form_rows() -> Iterator[list[str]]:
    """Which form of BSP is the fastest all-reduce, and what the fastest kernel gains over it."""
    for target, norm in product(ENGINE_MACHINES, ("none", "rms")):
        spans: dict[str, list[dict[str, float]]] = {size: [] for size in BYTES}
        for shape, times in form_times(engine_trials(target, "all_reduce")).items():
            if shape.to_dict()["norm"] == norm:
                size = next(name for name, most in BYTES.items() if shape.message_bytes <= most)
                spans[size].append(times)
        yield [title(target), norm, *map(form_and_gain, spans.values())]


def form_times(trials: Iterable[Trial]) -> dict[Shape, dict[str, float]]:
    """Microseconds of each form of BSP, and of the fastest "kernel", of the last run of a shape
    that timed a kernel and two forms, captured."""
    runs: dict[tuple[Shape, str], dict[str, float]] = defaultdict(dict)
    for trial in trials:
        if isinstance(trial.outcome, Measurement) and trial.mode == "graph":
            times, config = runs[trial.shape, trial.run], trial.config
            name = str(config["form"]) if config.variant == "bsp" else "kernel"
            times[name] = min(trial.outcome.median_us, times.get(name, inf))
    return {
        shape: times for (shape, _), times in runs.items() if "kernel" in times and len(times) > 2
    }


def form_and_gain(shapes: Sequence[dict[str, float]]) -> str:
    """A cell: the form that is mostly the fastest, and what the kernel gains over the fastest."""
    if not shapes:
        return "-"
    bsp = [min((us, name) for name, us in times.items() if name != "kernel") for times in shapes]
    gains = [us / times["kernel"] for (us, _), times in zip(bsp, shapes, strict=True)]
    ((form, number),) = Counter(name for _, name in bsp).most_common(1)
    mean = geometric_mean(gains)
    return f"{form} {number}; {mean:.2f}; {faster(gains)} of {len(gains)}"


def gain_of(row: speedup.Line) -> float:
    """BSP / fastest, 1 where that is BSP."""
    return max(1.0, speedup.speedup(row.winner)) if row.winner.config.variant != "bsp" else 1.0


def engine_rows() -> Iterator[list[str]]:
    """A row for each weight, or width, of a machine with final rows at most of ENGINE_TOKENS."""
    for target, op in product(ENGINE_MACHINES, ENGINE_OPS):
        for trials in speedup.groups(engine_trials(target, op)).values():
            if not speedup.lines(trials, "graph", "final"):
                continue
            rows = {
                row.shape.to_dict()["m"]: row
                for stage in ("search", "final")  # of both the final one
                for row in speedup.lines(trials, "graph", stage)
            }
            if 2 * len(rows.keys() & set(ENGINE_TOKENS)) > len(ENGINE_TOKENS):
                sizes = trials[0].shape.to_dict()
                named = [f"{name}={sizes[name]}" for name in ("n", "k", "norm") if name in sizes]
                cells = (fastest(rows[m]) if m in rows else "-" for m in ENGINE_TOKENS)
                yield [title(target), op, ", ".join(named), *cells]


def fastest(row: speedup.Line) -> str:
    return f"{gain_of(row):.2f} ({row.winner_us:.1f})"


def text(rows: Sequence[Sequence[str]]) -> str:
    head, *others = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([head, "|---" * len(rows[0]) + "|", *others])


def title(target: str) -> str:
    """As a reader writes it: 8x H200."""
    machine = Target.parse(target)
    return f"{machine.gpus}x {machine.chip.name.upper()}"


def cells(rows: Sequence[speedup.Line]) -> list[str]:
    """Geometric mean of BSP / winner, that of its lower bounds, and the shapes won."""
    if not rows:
        return ["-", "-"]
    mean = geometric_mean(speedup.speedup(row.winner) for row in rows)
    lower = geometric_mean(row.interval[0] for row in rows)
    return [f"{mean:.3f} ({lower:.3f})", f"{sum(row.fused_wins for row in rows)} of {len(rows)}"]


def set_rows(trials: list[Trial], target: str) -> Iterator[list[str]]:
    """A row for each named set of which every shape has a final row in some mode, and for its parts
    where its operation names them."""
    if not trials:
        return
    op, chip = operation(trials[0].op), Target.parse(target).chip
    part_of, there = op.module("limit").part, {trial.shape for trial in trials}
    for name, shapes in op.shape_sets.items():
        for options in speedup.asked(shapes, trials):
            wanted = speedup.possible(shapes, Target.parse(target).gpus, options)
            whole = [complete(trials, wanted, mode) for mode in MODES if wanted <= there]
            if wanted and any(whole):
                shard = [f"along {options['shard'].upper()}"] if "shard" in options else []
                named = ", ".join([f"`{name}`", options["dtype"], *shard])
                yield row_of(target, named, whole)
                for part, words in PARTS.items():
                    parts = [[r for r in rows if part_of(r.shape, chip) == part] for rows in whole]
                    if any(parts):
                        yield row_of(target, f"{named}: {words}", parts)


def complete(trials: list[Trial], wanted: set[object], mode: str) -> list[speedup.Line]:
    """Lines of a set in one mode, or none where a shape has no final row."""
    rows = speedup.lines([trial for trial in trials if trial.shape in wanted], mode)
    return rows if {row.shape for row in rows} == wanted else []


def row_of(target: str, named: str, modes: Sequence[Sequence[speedup.Line]]) -> list[str]:
    number = max(map(len, modes))
    return [title(target), named, str(number), *(cell for rows in modes for cell in cells(rows))]


def layouts(trials: list[Trial], target: str) -> Iterator[list[str]]:
    for family in speedup.groups(trials).values():
        shape = family[0].shape.to_dict()
        modes = [speedup.lines(family, mode) for mode in MODES]
        if (shape["n"], shape["k"]) == (3584, 8192) and any(modes):
            m = [str(row.shape.to_dict()["m"]) for row in modes[0]]
            span = ", ".join(m) if len(m) <= 4 else f"{m[0]} to {m[-1]}"
            stored = ", ".join(shape["b_layout"].upper())
            words = f"{shape['dtype']}, along {shape['shard'].upper()}, B `[{stored}]`"
            yield row_of(target, f"{words}: M = {span}", modes)


def of_set(trials: list[Trial], name: str) -> list[Trial]:
    """Rows of a named set on the machine that is shown shape by shape."""
    world = Target.parse(speedup.TARGET).gpus
    shapes = set(operation(trials[0].op).shape_sets[name](world=world))
    return [trial for trial in trials if trial.shape in shapes]


def details(trials: list[Trial]) -> Iterator[str]:
    """The `paper` set, fp16, A sharded along K, in both modes."""
    for mode, meaning in MODES.items():
        rows = speedup.lines(of_set(trials, "paper"), mode)
        wins = sum(row.fused_wins for row in rows)
        mean = geometric_mean(speedup.speedup(row.winner) for row in rows)
        yield (
            f"**{mode}** ({meaning}): a fused variant wins {wins} of {len(rows)} shapes; geometric "
            f"mean\nof BSP / winner {mean:.2f}."
        )
        yield "\n".join(speedup.table(rows))


def limits(trials: list[Trial]) -> Iterator[str]:
    """Table lines of the same shapes, captured: the computed limit and the measured winner."""
    rows = speedup.lines(of_set(trials, "paper"), "graph")
    yield "The limit is computed, the winner is measured; graph, microseconds."
    yield "\n".join(limit.table(shares(rows, speedup.TARGET)))


def decodes(trials: list[Trial]) -> Iterator[str]:
    """The `llama3-70b` set, captured."""
    yield "`llama3-70b`: 64 query heads on 8, fp16; `kv_len` is tokens on each rank; graph."
    yield "\n".join(speedup.table(speedup.lines(of_set(trials, "llama3-70b"), "graph")))


def reduction(op: str, read: Callable[[str, str], list[Trial]] = committed) -> Iterator[str]:
    """An operation that reduces over ranks: its sets on each machine, then each shape of the
    largest one, captured. The share of the physical limit stands beside each figure."""
    yield f"## {op}"
    rows = {target: measured for target in MACHINES if (measured := read(target, op))}
    sets = [row for target, measured in rows.items() for row in shared_sets(measured, target)]
    if not sets:
        yield "Not measured on H200, but for single shapes: no set has rows in full."
        return
    yield "The limit is computed, all else is measured; graph, microseconds."
    yield text([["machine", "shapes", "number", "BSP / winner", "limit / winner"], *sets])
    target = next(iter(rows))
    for family in speedup.groups(rows[target]).values():
        if measured := speedup.lines(family, "graph"):
            yield f"{title(target)}, {sizes(measured)}:"
            yield text([[*SHARED], *shared(measured, target)])


SHARED = ("M", "BSP", "winner", "time", "BSP / winner (95 % interval)", "limit", "limit / winner")


def shared(rows: Sequence[speedup.Line], target: str) -> Iterator[list[str]]:
    """A row under SHARED for each shape of a family."""
    for row, share in zip(rows, shares(rows, target), strict=True):
        variant, (low, high) = row.winner.config.variant, row.interval
        times = [f"{row.median_us('bsp'):.1f}", variant, f"{share.winner_us:.1f}"]
        ratio = f"{speedup.speedup(row.winner):.2f} ({low:.2f} to {high:.2f})"
        limits = [f"{share.limit.us:.1f}", f"{share.reached:.2f}"]
        yield [str(row.shape.to_dict()["m"]), *times, "1" if variant == "bsp" else ratio, *limits]


def shared_sets(trials: list[Trial], target: str) -> Iterator[list[str]]:
    """A row for each set of which every shape has a captured final row, and for its parts."""
    op, machine = operation(trials[0].op), Target.parse(target)
    for name, shapes in op.shape_sets.items():
        for options in speedup.asked(shapes, trials):
            rows = complete(trials, speedup.possible(shapes, machine.gpus, options), "graph")
            parts = [(op.module("limit").part(row.shape, machine.chip), row) for row in rows]
            for part in dict.fromkeys(["", *(part for part, _ in parts)]) if rows else ():
                some = [row for own_part, row in parts if part in ("", own_part)]
                named = ", ".join([f"`{name}`", *options.values(), *([part] if part else [])])
                share = geometric_mean(each.reached for each in shares(some, target))
                yield [title(target), named, str(len(some)), cells(some)[0], f"{share:.2f}"]


def shares(rows: Sequence[speedup.Line], target: str) -> list[limit.Share]:
    return limit.shares(((row.shape, row.winner_us) for row in rows), Target.parse(target).chip)


def sizes(rows: Sequence[speedup.Line]) -> str:
    """What the shapes of a family share, as in `n=8192, k=28672, ...`."""
    names = rows[0].shape.to_dict()
    return ", ".join(f"{name}={value}" for name, value in names.items() if name != "m")
