"""The three taxes in a report: from BSP's time to the fused one's, bar after bar, measured beside
modelled. Imported only by the report, with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Self

from matplotlib.figure import Figure

from tftune.db.target import Target
from tftune.db.trial import Trial
from tftune.report.figures import BLUE, GREEN, INK, ORANGE, PAGE, PIXEL, PURPLE, QUIET, RULE
from tftune.report.svg import svg
from tftune.studies.taxes.arms import FACTORS
from tftune.studies.taxes.rows import Case, splits
from tftune.studies.taxes.split import Modelled, Split

REST = "rest"
"""What the taxes do not explain: of the model, the work itself."""
COLOURS = {"launch": BLUE, "wait": ORANGE, "memory": GREEN, REST: PURPLE}
HATCH = "////"
"""The pattern of modelled bars."""
WIDTH, BAR, HEAD = 560, 26, 66
"""Pixels: of a figure, of a bar with what is between two, and of what is above and below them."""
METHOD = (
    "From BSP's time to the fused config's. launch: the slope over kernels added, times the "
    "kernels that BSP launches more. wait: the fused config waiting for everything, less itself. "
    "memory: the slope over round trips added, times those that BSP makes more. rest: what these "
    "do not explain; of the model, the work itself."
)


@dataclass(frozen=True)
class Waterfall:
    """From BSP to fused, in microseconds. `word`: whether it is measured or modelled."""

    word: str
    bsp_us: float
    fused_us: float
    taxes: Mapping[str, float]

    @classmethod
    def measured(cls, found: Split) -> Self:
        taxes = {name: found.taxes[name].value for name in FACTORS}
        return cls("measured", found.bsp_us.value, found.fused_us.value, taxes)

    @classmethod
    def modelled(cls, found: Modelled) -> Self:
        return cls("modelled", found.bsp_us, found.fused_us, dict(found.taxes))

    @property
    def steps(self) -> dict[str, float]:
        """The taxes, and the rest: together BSP's time less the fused one's."""
        rest = self.bsp_us - self.fused_us - sum(self.taxes.values())
        return {**self.taxes, REST: rest}

    @property
    def bars(self) -> list[tuple[str, float, float]]:
        """Name, left end and length of each bar, from BSP down to fused; a tax that is negative
        ends where it begins to the left."""
        spans, at = [("BSP", 0.0, self.bsp_us)], self.bsp_us
        for name, us in self.steps.items():
            spans.append((name, min(at, at - us), abs(us)))
            at -= us
        return [*spans, ("fused", 0.0, self.fused_us)]

    def sentence(self) -> str:
        """The figure in words."""
        steps = ", ".join(f"{name} {us:.1f}" for name, us in self.steps.items())
        return f"{self.word}: BSP {self.bsp_us:.1f} us, {steps}, fused {self.fused_us:.1f} us"


def figure(falls: Sequence[Waterfall]) -> Figure:
    """Each waterfall below the one before, on one axis of microseconds; modelled bars are
    hatched."""
    rows = [(fall, *bar) for fall in falls for bar in fall.bars]
    height = HEAD + BAR * len(rows)
    drawn = Figure(figsize=(WIDTH * PIXEL, height * PIXEL), dpi=72)
    axes = drawn.add_axes((0.24, 44 / height, 0.68, 1 - HEAD / height))
    for place, (fall, name, left, us) in enumerate(rows):
        is_modelled = fall.word == "modelled"
        axes.barh(
            place, us, left=left, height=0.72, color=COLOURS.get(name, RULE),
            edgecolor=PAGE if is_modelled else "none", hatch=HATCH if is_modelled else None, lw=0,
        )  # fmt: skip
        step = fall.steps.get(name)
        text = f"{us:.1f}" if step is None else f"{-step:+.1f}"
        axes.annotate(
            text, (left + us, place), xytext=(4, 0), textcoords="offset points", va="center",
            fontsize=10, color=INK,
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), [f"{name}, {fall.word}" for fall, name, _, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", visible=True)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    for place in range(len(falls[0].bars), len(rows), len(falls[0].bars)):
        axes.axhline(place - 0.5, color=QUIET, lw=0.8)
    axes.set_xlim(0, 1.12 * max(max(fall.bsp_us, fall.fused_us) for fall in falls))
    axes.set_xlabel("us of one call")
    return drawn


def section(rows: Sequence[Trial]) -> str:
    """A figure for each shape that has all rows of stage `tax`; empty without any."""
    drawn = [_drawn(case, split, rows[0].target) for case, split in splits(rows)]
    if not drawn:
        return ""
    return f"<p class='quiet'>{escape(METHOD)}</p>\n<div class='grid'>{''.join(drawn)}</div>\n"


def _drawn(case: Case, found: Split, target: str) -> str:
    falls = [Waterfall.measured(found)]
    if model := case.modelled(Target.parse(target).chip):
        falls.append(Waterfall.modelled(model))
    said = "; ".join(fall.sentence() for fall in falls)
    picture = svg(figure(falls), f"taxes {case.shape}", f"Taxes of {case.shape}. {said}")
    residual = (
        f"residual {found.residual.value:.0%} ({found.residual.low:.0%} to "
        f"{found.residual.high:.0%})"
        if found.residual
        else "no residual, since BSP is not surely slower"
    )
    return (
        f"<figure><h4>{escape(str(case.shape))}</h4>{picture}<figcaption>"
        f"{escape(case.config.variant)}, in a graph; {residual}.</figcaption></figure>\n"
    )
