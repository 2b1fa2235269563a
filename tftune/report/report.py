"""The report: one self-contained HTML page for an operation, target and bench, and its headline
figures as PNG files beside it.

Everything shown comes from the rows that are handed in; the page's date is theirs, so the same rows
give the same page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tftune.db.files import replace_file
from tftune.db.trial import Run, Trial
from tftune.models.artifact import Mode
from tftune.models.layout import LayoutModel
from tftune.report.series import all_series
from tftune.report.tables import BENCH_WORDS, lines

OTHERWISE = "name another folder with --out"


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
    more: Sequence[tuple[str, str, Callable[[], str]]] = ()
    """Sections of studies: name, title, and what draws the body."""

    def trees(self, mode: str) -> list[LayoutModel]:
        """The layouts of a mode that have a tree, in the order of the mode."""
        learned = self.learned[mode]
        layouts = [] if isinstance(learned, str) else learned.layouts.values()
        return [model for model in layouts if model.root is not None]

    @property
    def word(self) -> str:
        """How its times are called: measured, modelled, replayed or measured in a drill."""
        return BENCH_WORDS[self.bench]

    @property
    def title(self) -> str:
        return f"{self.op} on {self.target}, {self.word} {self.date}".strip()

    @property
    def date(self) -> str:
        """The day of the newest run, from its rows."""
        return max((run.started[:10] for run in self.runs), default="")

    @property
    def stem(self) -> str:
        return f"{self.op}__{self.target}__{self.bench}"


def write(page: Page, out: Path) -> list[Path]:
    """Writes the page and its PNGs under `out`: the HTML's path first. All is drawn before the
    first file is written, and each file is replaced whole.

    Raises ValueError where no row has a time, and StoreError where a file cannot be written.
    """
    series = all_series(lines(page.trials))
    if not series:
        raise ValueError(
            f"none of the {len(page.trials)} rows of {page.op} on {page.target} has a time; run "
            f"`tftune search {page.op}`"
        )
    from tftune.report import figures, pictures  # with matplotlib
    from tftune.report.page import html

    with figures.style():
        overviews, images = pictures.overviews(series, page.title)
        files: dict[Path, bytes | str] = {
            out / f"{page.stem}.html": html(page, series, overviews),
            **{out / f"{page.stem}__{name}.png": png for name, png in images.items()},
        }
    for path, content in files.items():
        replace_file(path, content, otherwise=OTHERWISE, make_folder=True)
    return list(files)
