"""The report: one self-contained HTML page for an operation, target and bench, and its figures as
PNG files beside it.

Everything shown comes from the rows that are handed in; the page's date is theirs, so the same rows
give the same page.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from tftune.cli.run_health import doubts
from tftune.db.evidence import measurement
from tftune.db.files import replace_file
from tftune.db.trial import Failure, Run, Trial
from tftune.models.artifact import Mode
from tftune.models.layout import LayoutModel
from tftune.report.tables import (
    BENCH_WORDS,
    Line,
    assumptions,
    cells,
    head,
    headline,
    lines,
    provenance,
    variants_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH = 160
OTHERWISE = "name another folder with --out"
CAPTIONS = {
    "time": "Time of the best config of each variant. A filled mark is the fastest at its size.",
    "speedup": "BSP's time divided by the variant's, in the same rounds; bars are 95 % intervals. Above the grey line: faster than BSP.",
    "scaling": "The same problem on more and more ranks. Dashed: half the time with twice the ranks.",
    "tree": "Which configs the selector chooses among for shapes that were not measured, read from left to right.",
    "failures": "Configs that gave no time, by kind and variant.",
}
STYLE = """
:root { color-scheme: light }
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; color: #22262b; max-width: 1100px;
  margin: 2.5rem auto; padding: 0 1.25rem }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem } h2 { font-size: 1.05rem; margin: 2.4rem 0 .4rem }
.word { font-size: .8rem; font-weight: 600; padding: .15rem .55rem; border-radius: 1rem; background: #e5e7eb; vertical-align: middle }
.word.modelled { background: #fef3c7 }
.quiet, figcaption { color: #6b7280; font-size: .87rem } .lead { font-size: 1.08rem; margin: 1.1rem 0 0 } .lead p { margin: .15rem 0 }
figure { margin: .4rem 0 } img { max-width: 100% }
.wide { overflow-x: auto } table { border-collapse: collapse; font-size: .87rem; width: 100% }
th, td { text-align: right; padding: .28rem .6rem; border-bottom: 1px solid #eceef1; font-variant-numeric: tabular-nums }
th, td { white-space: nowrap }
th { color: #6b7280; font-weight: 600 } th:first-child, td:first-child { text-align: left } td.best { font-weight: 700 }
"""


@dataclass(frozen=True)
class Page:
    """What one page is about: rows of one operation, target and bench, their runs, and what each
    mode learned from them.

    Where nothing could be learned, the sentence that says why stands instead.
    """

    op: str
    target: str
    bench: str
    trials: Sequence[Trial]
    runs: Sequence[Run]
    learned: Mapping[str, Mode | str]

    def trees(self, mode: str) -> list[LayoutModel]:
        """The layouts of a mode that have a tree, those with most shapes first."""
        found = self.learned[mode]
        return (
            []
            if isinstance(found, str)
            else [model for model in found.layouts.values() if model.root is not None]
        )

    @property
    def title(self) -> str:
        return f"{self.op} on {self.target}, {BENCH_WORDS[self.bench]} {self.date}".strip()

    @property
    def date(self) -> str:
        """The day of the newest run, from its rows."""
        return max((run.started[:10] for run in self.runs), default="")

    @property
    def stem(self) -> str:
        return f"{self.op}__{self.target}__{self.bench}"


def write(page: Page, out: Path) -> list[Path]:
    """Writes the page and its PNGs under `out`: the HTML's path first. Raises ValueError where no
    row has a time."""
    found = lines(page.trials)
    if not found:
        raise ValueError(
            f"none of the {len(page.trials)} rows of {page.op} on {page.target} has a time; run `tftune search {page.op}`"
        )
    images = _figures(page, found)
    paths = [out / f"{page.stem}.html"]
    for name, png in images.items():
        paths.append(out / f"{page.stem}__{name}.png")
        replace_file(paths[-1], png, otherwise=OTHERWISE, make_folder=True)
    replace_file(paths[0], _html(page, found, images), otherwise=OTHERWISE, make_folder=True)
    return paths


def _figures(page: Page, found: Sequence[Line]) -> dict[str, bytes]:
    """PNG bytes by name; matplotlib is imported here."""
    from tftune.report import figures

    with figures.style():
        drawn = {"time": figures.time_figure(found), "speedup": figures.speedup_figure(found)}
        if scaling := figures.scaling_figure(found):
            drawn["scaling"] = scaling
        for mode in page.learned:
            drawn |= {
                f"tree_{mode}_{number}": figures.tree_figure(model)
                for number, model in enumerate(page.trees(mode))
            }
        if failures := figures.failure_figure(page.trials):
            drawn["failures"] = failures
        return {name: _png(figure, page.title, name) for name, figure in drawn.items()}


def _png(figure: Figure, title: str, name: str) -> bytes:
    from io import BytesIO

    figure.suptitle(
        f"{title}: {name.replace('_', ', ').replace('speedup', 'speed-up')}",
        x=0.01,
        ha="left",
        fontsize=10,
        fontweight="bold",
    )
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH)
    return buffer.getvalue()


def _html(page: Page, found: Sequence[Line], images: Mapping[str, bytes]) -> str:
    word = BENCH_WORDS[page.bench]
    sentences = (*headline(found), *assumptions(page.bench, page.target))
    lead = [f"<p>{escape(sentence)}</p>" for sentence in sentences]
    parts = [
        f"<h1>{escape(page.op)} on {escape(page.target)} <span class='word {word}'>{word}</span></h1>",
        f"<p class='quiet'>{escape(page.date)} &middot; {escape(provenance(page.runs))}</p>",
        f"<div class='lead'>{''.join(lead)}</div>",
        _section("Time", _figure("time", images)),
        _section("Speed-up over BSP", _figure("speedup", images)),
        *([_section("Strong scaling", _figure("scaling", images))] if "scaling" in images else []),
        _section("Results", _table(found) + _doubts(page, found)),
        *(_section(f"Tree, {mode}", _trees(page, mode, images)) for mode in page.learned),
        _section("Failures", _failures(page, images)),
    ]
    head = f"<meta charset='utf-8'><title>{escape(page.title)}</title><style>{STYLE}</style>"
    return (
        f"<!doctype html>\n<html lang='en'><head>{head}</head><body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _section(title: str, body: str) -> str:
    return f"<h2>{escape(title)}</h2>\n{body}"


def _figure(name: str, images: Mapping[str, bytes]) -> str:
    caption = CAPTIONS[name.partition("_")[0]]
    data = base64.b64encode(images[name]).decode("ascii")
    return f"<figure><img alt='{escape(caption)}' src='data:image/png;base64,{data}'><figcaption>{escape(caption)}</figcaption></figure>"


def _trees(page: Page, mode: str, images: Mapping[str, bytes]) -> str:
    """The tree of each layout of a mode that has one, or why there is none."""
    found, models = page.learned[mode], page.trees(mode)
    if not models:
        sentence = (
            found
            if isinstance(found, str)
            else "Too few shapes for a tree: measured shapes, and sizes between them, have answers."
        )
        return f"<p class='quiet'>{escape(sentence)}</p>"
    drawn = [
        f"<p class='quiet'>{escape(model.title)}</p>{_figure(f'tree_{mode}_{number}', images)}"
        for number, model in enumerate(models)
    ]
    return "".join(drawn)


def _failures(page: Page, images: Mapping[str, bytes]) -> str:
    failed = sum(isinstance(trial.outcome, Failure) for trial in page.trials)
    sentence = f"<p class='quiet'>{failed:,} of {len(page.trials):,} trials failed.</p>"
    return sentence + (_figure("failures", images) if failed else "")


def _table(found: Sequence[Line]) -> str:
    variants = variants_of(found)
    names = "".join(f"<th>{escape(name)}</th>" for name in head(variants))
    rows = "\n".join(_row(line, variants) for line in found)
    return f"<div class='wide'><table><thead><tr>{names}</tr></thead><tbody>\n{rows}\n</tbody></table></div>"


def _row(line: Line, variants: Sequence[str]) -> str:
    best = 3 + list(variants).index(line.winner.config.variant)
    shown = [
        f"<td{' class=best' if i == best else ''}>{escape(cell)}</td>"
        for i, cell in enumerate(cells(line, variants))
    ]
    return f"<tr title='{escape(str(line.winner.config), quote=True)}'>{''.join(shown)}</tr>"


def _doubts(page: Page, found: Sequence[Line]) -> str:
    """The measurements and runs that doubt themselves, each in its own words."""
    lines = [
        f"Unstable: {line.shape}, {line.mode}: {why}"
        for line in found
        if (why := measurement(line.winner).why_unstable())
    ]
    lines += [f"Run {run.id}: {why}" for run in page.runs for why in doubts(run)]
    return "".join(f"<p class='quiet'>{escape(line)}.</p>" for line in lines)
