"""What a search found, as values and as words: the best trial of each variant per shape and mode.
Standard library only.

The command line and the report show the same lines, so that neither decides alone what "winner" or
"ratio" means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from tftune.db.discount import MODEL_ERROR, discount_of
from tftune.db.evidence import BSP, Speedup, counted, measurement, of_newest_code
from tftune.db.trial import EVIDENCE, MODES, Measurement, Run, Trial
from tftune.db.verdict import Best, Verdict, standing
from tftune.kernels.core.grouping import groups
from tftune.kernels.core.shape import Shape
from tftune.models.artifact import Lent
from tftune.models.layout import layout_text

BENCH_WORDS = {
    "node": "measured",
    "model": "modelled",
    "replay": "replayed",
    "drill": "measured in a drill",
}
"""How a time of each bench is called wherever it is shown. A predicted time never passes for a
measured one."""


def assumptions(bench: str, target: str) -> list[str]:
    """The sentence that goes with modelled times: how many constants of the chip are assumed.
    Nothing with any other times."""
    if bench != "model":
        return []
    from tftune.db.target import Target

    chip = Target.parse(target).chip
    if chip.missing(2):
        return [f"modelled with a calibration of {target}, whose file says what it assumes"]
    return [f"modelled: {chip.assumptions} (kernels/core/chips.py)"]


class Line(Best):
    """One shape in one mode, as tables and figures show it."""

    @property
    def word(self) -> str:
        """How its times are called: measured, modelled, replayed or measured in a drill."""
        return BENCH_WORDS[self.winner.bench]

    def median_us(self, variant: str) -> float:
        return measurement(self.by_variant[variant]).median_us

    @property
    def verdict(self) -> Verdict | None:
        """What the winner's row says beside BSP's; None without BSP."""
        return self.verdicts.get(self.winner.config.variant)

    @property
    def ratio(self) -> Speedup | None:
        """Speed-up of the winner over BSP with its interval; exactly 1 where BSP wins."""
        return self.verdict.ratio if self.verdict else None

    @property
    def fused_wins(self) -> bool:
        """Whether a fused variant is surely faster than BSP, after the discount."""
        return self.verdict is not None and self.verdict.fused_wins

    @property
    def ties_with_bsp(self) -> bool:
        return self.verdict is not None and self.verdict.ties

    @property
    def discounted(self) -> float | None:
        """A modelled speed-up of any variant but BSP after the discount; None for any other."""
        return self.verdict.kept.ratio if self.verdict and self.verdict.discount > 1 else None

    @property
    def answer(self) -> Trial:
        """The winner where it is surely faster than BSP after the discount, else BSP."""
        if self.bsp is None or self.verdict is None or self.verdict.answers:
            return self.winner
        return self.bsp

    def to_dict(self) -> dict[str, Any]:
        """What `tftune search --json` prints of one line."""
        times = {
            variant: measurement(trial).median_us for variant, trial in self.by_variant.items()
        }
        ratio = self.ratio or (None, None, None)
        return {
            "shape": str(self.shape),
            "mode": self.mode,
            "bench": self.winner.bench,
            "times": self.word,
            "target": self.winner.target,
            "winner": self.winner.config.to_dict(),
            "us": times,
            "speedup": ratio[0],
            "speedup_interval": list(ratio[1:]),
            "speedup_discounted": self.discounted,
            "evaluations": self.evaluations,
            "feasible": self.feasible,
            "tied": len(self.tied) or 1,
            "off_by_at_most": self.off_by,
        }


def lines(trials: Iterable[Trial]) -> list[Line]:
    """One line for each shape and mode that has a measurement, in order of the shapes; all trials
    of one target and bench.

    Rows of older kernels and of `tftune.warm_up` are left out, as they are for training.
    """
    rows = of_newest_code(trial for trial in trials if trial.stage in EVIDENCE)
    made = [
        _line(shape, mode, group)
        for (shape, mode), group in groups(rows, lambda trial: (trial.shape, trial.mode)).items()
        if any(isinstance(t.outcome, Measurement) for t in group)
    ]
    return sorted(made, key=lambda line: (MODES.index(line.mode), line.shape.family, line.shape))


def _line(shape: Shape, mode: str, trials: Sequence[Trial]) -> Line:
    rows = [(trial.config, trial) for trial in trials]
    won = standing(counted(rows), rows, mode)
    evaluations = len({trial.config for trial in trials if trial.stage == "search"})
    return Line(shape, mode, won.winner, won.bsp, won.by_variant, won.verdicts, evaluations)


def variants_of(lines: Iterable[Line]) -> list[str]:
    """The variants with a time, BSP first."""
    return sorted(
        {variant for line in lines for variant in line.by_variant},
        key=lambda variant: (variant != "bsp", variant),
    )


def head(variants: Sequence[str]) -> list[str]:
    """Column names of the result table."""
    times = [f"{label(variant)} us" for variant in variants]
    return ["shape", "mode", "times", *times, "winner", "over BSP", "evaluations", "off by"]


def label(variant: str) -> str:
    return "BSP" if variant == "bsp" else variant


def cells(line: Line, variants: Sequence[str]) -> list[str]:
    """One row of the result table; the third cell says whether the times are measured or
    modelled."""
    times = [
        f"{line.median_us(variant):,.1f}" if variant in line.by_variant else "-"
        for variant in variants
    ]
    tried = f"{line.evaluations:,}" + (f" of {line.feasible:,}" if line.feasible else "")
    winner = label(line.winner.config.variant)
    if line.ties_with_bsp:
        winner += " (ties with BSP)"
    elif len(line.tied) > 1:
        winner += f" (tie of {len(line.tied)})"
    first, last = [str(line.shape), line.mode, line.word], [tried, off_by_text(line.off_by)]
    return [*first, *times, winner, over_bsp_text(line), *last]


def compact(lines: Sequence[Line]) -> list[tuple[str, list[str], list[list[str]]]]:
    """Tables of few columns: what tells shapes apart, BSP's time, the fastest variant's, and what
    it comes to; above each what its shapes have in common. One for each mode and layout, or for
    each family where that takes more than NARROW characters."""
    made = []
    for (mode, _), group in groups(lines, lambda line: (line.mode, line.shape.layout)).items():
        whole = _compact(mode, group)
        columns = zip(whole[1], *whole[2], strict=True)
        if sum(2 + max(map(len, column)) for column in columns) - 2 <= NARROW:
            made.append(whole)
            continue
        families = groups(group, lambda line: line.shape.layer).values()
        made += [_compact(mode, family) for family in families]
    return made


NARROW = 80
"""Columns of a terminal that nobody made wider."""


def _compact(mode: str, lines: Sequence[Line]) -> tuple[str, list[str], list[list[str]]]:
    shapes = [line.shape.to_dict() for line in lines]
    names = [name for name in shapes[0] if len({shape[name] for shape in shapes}) > 1]
    names = names or [lines[0].shape.SIZE]
    parts = str(lines[0].shape).split(",")
    common = ", ".join(part for part in parts if part.partition("=")[0] not in names)
    modelled = any(line.discounted is not None for line in lines)
    head = [*names, "BSP us", "best us", "variant", "over BSP", *["kept"] * modelled, "verdict"]
    rows = []
    for line, shape in zip(lines, shapes, strict=True):
        times = [f"{line.median_us(name):,.1f}" if name in line.by_variant else "-"
                 for name in (BSP, line.winner.config.variant)]  # fmt: skip
        kept = [f"{line.discounted:.2f}x" if line.discounted is not None else "-"] * modelled
        said = [label(line.winner.config.variant), ratio_text(line.ratio), *kept, _word(line)]
        rows.append([*(str(shape[name]) for name in names), *times, *said])
    return f"{mode}: {common}", head, rows


def _word(line: Line) -> str:
    """Who answers, in a word."""
    if line.verdict is None:
        return "no BSP"
    if line.ties_with_bsp:
        return "tie: BSP"
    return "faster" if line.verdict.answers else "BSP"


def off_by_text(off_by: float | None) -> str:
    """How much longer the winner may take than the best config considered, at 95 %.

    >>> off_by_text(1.034), off_by_text(1.0), off_by_text(2.04), off_by_text(None)
    ('3.4 %', '0 %', '104 %', '-')
    """
    if off_by is None:
        return "-"
    percent = 100 * (off_by - 1)
    return f"{percent:.0f} %" if percent >= 99.5 else f"{percent:.2g} %"


def ratio_text(ratio: Speedup | None) -> str:
    """`1.23x (1.20-1.26)`; without an interval where there is none."""
    if ratio is None:
        return "-"
    middle, low, high = ratio
    return f"{middle:.2f}x" + (f" ({low:.2f}-{high:.2f})" if low < high else "")


def over_bsp_text(line: Line) -> str:
    """The winner's speed-up over BSP; a modelled one also after the discount that the selector
    takes off it, and whether BSP answers then."""
    return ratio_text(line.ratio) + discounted_text(line, "x")


def discounted_text(line: Line, times: str) -> str:
    """What follows a modelled speed-up; "" after any other. `times`: the sign after a number."""
    if line.discounted is None or line.verdict is None:
        return ""
    bsp = "" if line.verdict.answers else ": BSP"
    return f", {line.discounted:.2f}{times} after discount{bsp}"


def headline(lines: Sequence[Line]) -> list[str]:
    """One sentence for each mode: where a fused variant wins, and by how much; modelled ones also
    after their discount."""
    by_mode = {mode: [line for line in lines if line.mode == mode] for mode in MODES}
    said = [_mode_headline(mode, mode_lines) for mode, mode_lines in by_mode.items() if mode_lines]
    kept = [line.discounted > 1 for line in lines if line.discounted is not None]
    if kept:
        said.append(
            f"Modelled speed-ups are divided by {MODEL_ERROR} before the selector names another "
            f"config than BSP, as the model may overstate them: {sum(kept)} of {len(kept)} stay "
            "above 1."
        )
    return said


def _mode_headline(mode: str, lines: Sequence[Line]) -> str:
    won = [verdict.kept.ratio for _, verdict in fused_wins(lines)]
    ties = sum(line.ties_with_bsp for line in lines)
    after = after_discount(lines[0].winner.bench)
    gain = f", by {min(won):.2f}x to {max(won):.2f}x{after}" if won else after
    return (
        f"{mode}: a fused variant beats BSP on {len(won)} of {len(lines)} shapes{gain}; "
        f"{ties} tie{'s' * (ties != 1)} ({lines[0].word})."
    )


def fused_wins(lines: Iterable[Line]) -> list[tuple[Line, Verdict]]:
    """The lines where a fused variant answers, the smallest speed-up first."""
    won = [(line, line.verdict) for line in lines if line.verdict and line.verdict.fused_wins]
    return sorted(won, key=lambda pair: pair[1].kept.ratio)


def after_discount(bench: str) -> str:
    """What follows a count of wins, or a speed-up, that the discount was taken off; "" for times
    that have none."""
    return " after the discount" if discount_of(bench) > 1 else ""


def provenance(runs: Sequence[Run]) -> str:
    """Versions that the rows were made with, newest run last: `torch 2.11.0, triton 3.6.0`."""
    builds = dict.fromkeys(
        ", ".join(f"{name} {version}" for name, version in sorted(run.build.items()))
        for run in runs
    )
    return "; ".join(build for build in builds if build) or "unknown build"


def recoveries(recoveries_s: Sequence[float], starts_s: Sequence[float]) -> str:
    """How long broken worlds held a search up; seconds from noticing one until a fresh one could
    measure again.

    >>> one, two = recoveries([4.0, 9.0, 3.0], [1.5, 2.5, 1.5, 1.5]).split("; ")
    >>> one
    '3 recoveries from a broken world: 4.0 s median, 9.0 s worst'
    >>> two
    'starting a world: 1.5 s median, 2.5 s worst'
    """
    spread = [
        f"{median(times):.1f} s median, {max(times):.1f} s worst"
        for times in (recoveries_s, starts_s)
    ]
    count = f"{len(recoveries_s)} recover{'y' if len(recoveries_s) == 1 else 'ies'}"
    return f"{count} from a broken world: {spread[0]}; starting a world: {spread[1]}"


def shares(spent_s: Mapping[str, float], whole_s: float) -> str:
    """Where the time of a search went, phase by phase; what is left is the tuner's own.

    >>> shares({"time": 6.0, "check": 3.0}, 10.0)
    'wall time 10 s: 60 % time, 30 % check, 10 % tuner'
    """
    rest = {"tuner": whole_s - sum(spent_s.values())}
    named = [
        f"{100 * s / whole_s:.0f} % {name}"
        for name, s in (*sorted(spent_s.items(), key=lambda item: -item[1]), *rest.items())
    ]
    return f"wall time {whole_s:.0f} s: {', '.join(named)}"


def throughput(trials: Iterable[Trial], compile_s: float, whole_s: float) -> str:
    """Configs that a search checked and timed in a second of its wall time, world starts and the
    final stage included.

    A config of a shape counts once, in however many modes, stages and rows it was timed; one that
    failed does not count.
    """
    count = len(
        {(trial.shape, trial.config) for trial in trials if isinstance(trial.outcome, Measurement)}
    )
    rest_s = max(whole_s - compile_s, 1e-3)
    return (
        f"{count:,} configs checked and timed: {count / whole_s:.2f} a second, "
        f"{count / rest_s:.2f} without waiting for the compiler"
    )


def lent_text(op: str, lent: Lent) -> str:
    """Which layout's rows answer for another one, in words."""
    return (
        f"{layout_text(op, lent.layout)} is answered by {layout_text(op, lent.of)}: the same code, "
        f"and {lent.pairs} pairs measured in both agree within {lent.error:.1%}"
    )
