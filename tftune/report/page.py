"""The report's page: its sections in the order in which a reader asks, as one HTML document that
needs nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import groupby
from statistics import geometric_mean
from typing import TYPE_CHECKING

from tftune.db.discount import MODEL_ERROR
from tftune.db.evidence import measurement
from tftune.db.trial import FAILURES, Failure
from tftune.kernels.core.grouping import groups
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import size_of
from tftune.report import glossary, pictures
from tftune.report.page_style import STYLE
from tftune.report.results_table import (
    folded,
    has_interval,
    named_knobs,
    results,
    scrolled,
    shapes_of,
)
from tftune.report.run_health import doubts
from tftune.report.series import TIMES, Series, equation, layout_title, sizes_title, symbol
from tftune.report.tables import (
    Line,
    after_discount,
    assumptions,
    fused_wins,
    label,
    provenance,
    variants_of,
)
from tftune.report.tree_list import features, leaf_count, tree_list

if TYPE_CHECKING:
    from tftune.report.report import Page

TITLES = {"graph": "in a CUDA or HIP graph", "eager": "launched by the host"}
"""What each mode is, in few words."""
BASE = (
    "BSP (bulk-synchronous) is the usual way: a library's collective, then the compute kernel. "
    "Fused variants communicate inside the kernel. The <a href='#glossary'>glossary</a> has the "
    "other words."
)
MANY_LEAVES = 16
"""Leaves from which on a tree is folded."""


def html(page: Page, series: Sequence[Series], overviews: Mapping[str, str]) -> str:
    """The whole document. `overviews`: by mode, the figure of all its series."""
    lines = [line for each in series for line in each.lines]
    all_sections = [
        ("speed-up", "Speed-up by size", _overview(page, series, overviews)),
        ("results", "Results", results(page.op, series)),
        ("variants", "Speed-up of every variant", _panels(page, series, _speedups(lines, page))),
        ("times", "Time of every variant", _panels(page, series, _times(page))),
        ("scaling", "Strong scaling", _scaling(page, lines)),
        *((name, title, drawn()) for name, title, drawn in page.more),
        ("selector", "Selector", _trees(page)),
        ("failures", "Failed configs", _failures(page)),
        ("glossary", "Glossary", _glossary(page, lines)),
        ("provenance", "Provenance", _provenance(page, lines)),
    ]
    sections = [(name, title, body) for name, title, body in all_sections if body]
    links = "".join(f"<a href='#{name}'>{escape(title)}</a> " for name, title, _ in sections)
    bodies = "".join(
        f"<section><h2 id='{name}'>{escape(title)}</h2>\n{body}</section>\n"
        for name, title, body in sections
    )
    view = "<meta name='viewport' content='width=device-width, initial-scale=1'>"
    head = f"<meta charset='utf-8'>{view}<title>{escape(page.title)}</title>"
    return (
        f"<!doctype html>\n<html lang='en'><head>{head}<style>{STYLE}</style></head><body><main>\n"
        f"{_opening(page, lines)}<nav aria-label='Sections'>{links}</nav>\n{bodies}"
        "</main></body></html>\n"
    )


def _opening(page: Page, lines: Sequence[Line]) -> str:
    word = page.word
    what = glossary.prose(glossary.calls(operation(page.op))[0])
    cards = "".join(
        _card(mode, list(group)) for mode, group in groupby(lines, key=lambda line: line.mode)
    )
    return (
        f"<header><h1>{escape(page.op)} on {escape(page.target)} "
        f"<span class='word {word.split()[0]}'>{escape(word)}</span></h1>\n"
        f"<p class='quiet'>{escape(page.date)} &middot; {len(page.trials):,} trials</p>\n"
        f"<p>{what}</p>\n<p>{BASE}</p>\n{_modelled_note(page)}</header>\n"
        f"<div class='cards'>{cards}</div>\n"
    )


def _modelled_note(page: Page) -> str:
    if page.bench != "model":
        return ""
    assumed = "; ".join(assumptions(page.bench, page.target))
    return (
        f"<p class='note'><strong>No GPU was used.</strong> Every time here is {assumed}. "
        f"The model may overstate a speed-up by up to {MODEL_ERROR}{TIMES}; below that the "
        "selector keeps BSP.</p>\n"
    )


def _card(mode: str, lines: Sequence[Line]) -> str:
    """The headline of a mode: what these shapes gain by what is selected for them and by the
    fastest config, and the counts."""
    word = lines[0].word
    ratios = [(line.ratio.ratio, line) for line in lines if line.ratio is not None]
    head = f"<h2>Mode {escape(mode)}: {escape(TITLES[mode])}</h2>"
    if not ratios:
        return f"<div class='card'>{head}<p>No BSP was {word} beside these configs.</p></div>"
    won, after = fused_wins(lines), after_discount(lines[0].winner.bench)
    before = after.replace("after", "before")
    by = ""
    if won:
        line, verdict = won[-1]
        by = f", by at most {verdict.kept.ratio:.2f}{TIMES} ({_place(line)})"
    best, line = max(ratios, key=lambda each: each[0])
    variant, other = line.winner.config.variant, ""
    if best > 1 and not line.fused_wins:
        other = (
            f" The largest speed-up{before} is {best:.2f}{TIMES}, of {variant} ({_place(line)})."
        )
    judged = [line.verdict for _, line in ratios if line.verdict]
    served = geometric_mean([each.kept.ratio if each.answers else 1.0 for each in judged])
    fastest = geometric_mean([ratio for ratio, _ in ratios])
    return (
        f"<div class='card'>{head}<p class='number'>{served:.2f}{TIMES}</p>"
        f"<p>as fast as BSP: what is selected at these shapes, {word}{after}. BSP itself runs "
        f"where nothing is surely faster. The fastest configs: {fastest:.2f}{TIMES}{before}. Both "
        "are geometric means.</p>"
        f"<p>A fused variant wins on {len(won)} of {len(lines)} shapes{after}{escape(by)}."
        f"{escape(other)}</p></div>"
    )


def _place(line: Line) -> str:
    size = equation(line.shape.SIZE, size_of(line.shape))
    return ", ".join(part for part in (size, sizes_title(line.shape)) if part)


def _overview(page: Page, series: Sequence[Series], overviews: Mapping[str, str]) -> str:
    if not overviews:
        return ""
    papers = " Thick lines are the paper's shapes." if any(s.is_papers for s in series) else ""
    size = symbol(operation(page.op).shape.SIZE)
    drawn = "".join(
        f"<figure><h3>Mode {escape(mode)}, {page.word}</h3>{figure}</figure>"
        for mode, figure in overviews.items()
    )
    return (
        f"<p class='quiet'>Each mark is a shape: BSP's time divided by that of the fastest other "
        f"variant, {page.word}; the mark names the variant. Lines join shapes that differ in "
        f"{size} alone.{papers}</p>\n"
        f"<div class='grid two'>{drawn}</div>\n"
    )


Draw = Callable[[Sequence[Series]], list[str]]


def _speedups(lines: Sequence[Line], page: Page) -> tuple[str, Draw]:
    bars = " Bars are 95 % intervals." if any(map(has_interval, lines)) else ""
    return (
        f"BSP's time divided by that of the best config of each variant, {page.word}.{bars} Above "
        f"1{TIMES} the variant is faster than BSP.",
        pictures.speedup_panels,
    )


def _times(page: Page) -> tuple[str, Draw]:
    return (
        f"Time of the best config of each variant in µs for one call, {page.word}. A filled mark "
        "is the fastest at its size.",
        pictures.time_panels,
    )


def _panels(page: Page, series: Sequence[Series], drawing: tuple[str, Draw]) -> str:
    """A figure for each series of more than one size, under its mode and layout; the first of all
    layouts open."""
    caption, draw = drawing
    made = [f"<p class='quiet'>{escape(caption)}</p>\n"]
    for mode, of_mode in groupby(series, key=lambda each: each.mode):
        several = [each for each in of_mode if len(each.lines) > 1]
        drawn = dict(zip(several, draw(several), strict=True)) if several else {}
        made += [f"<h3>Mode {escape(mode)}</h3>"] if several else []
        for layout, group in groupby(several, key=lambda each: each.layout):
            of_layout = list(group)
            figures = "".join(_figure(each, drawn[each]) for each in of_layout)
            made.append(
                folded(layout_title(page.op, layout), shapes_of(of_layout),
                       f"<div class='grid'>{figures}</div>", is_open=len(made) == 2)
            )  # fmt: skip
    if alone := sum(len(each.lines) == 1 for each in series):
        made.append(f"<p class='quiet'>Not drawn, since no other size stands beside them: {alone} "
                    "shapes. The tables have them.</p>")  # fmt: skip
    return "".join(made) if len(made) > 1 else ""


def _figure(series: Series, drawn: str) -> str:
    word = f"<span class='quiet'>{series.lines[0].word}</span>"
    return f"<figure><h4>{escape(series.name)} {word}</h4>{drawn}</figure>\n"


def _scaling(page: Page, lines: Sequence[Line]) -> str:
    """One problem on more and more ranks, where there is one of several numbers of ranks."""
    scaled = [
        group
        for group in groups(lines, lambda line: (line.mode, line.shape.problem)).values()
        if len({line.shape.to_dict()["world"] for line in group}) > 1
    ]
    if not scaled:
        return ""
    drawn = "".join(
        f"<figure><h3>Mode {escape(group[0].mode)}, {page.word}: {_spaced(group[0].shape.problem)}"
        f"</h3>{figure}</figure>\n"
        for group, figure in zip(scaled, pictures.scaling_panels(scaled), strict=True)
    )
    return (
        f"<p class='quiet'>The same problem on more and more ranks: µs for one call, {page.word}. "
        f"Dashed: half the time on twice the ranks.</p><div class='grid'>{drawn}</div>\n"
    )


def _spaced(fields: str) -> str:
    return escape(", ".join(equation(*field.split("=")) for field in fields.split(",")))


def _trees(page: Page) -> str:
    """The trees of each mode, or why there are none."""
    if not page.learned:
        return ""
    word = page.word
    made = [
        f"<p class='quiet'>For a shape without a row the selector follows a tree, learned from "
        f"{word} times, to a leaf. A time formula then chooses among the leaf's configs and BSP; "
        "the config shown comes near the fastest most often.</p>\n"
    ]
    for mode, learned in page.learned.items():
        models = page.trees(mode)
        made.append(f"<h3>Mode {escape(mode)}</h3>\n")
        if not models:
            why = learned if isinstance(learned, str) else (
                f"Too few shapes for a tree: {word} shapes, and sizes between them, have answers."
            )  # fmt: skip
            made.append(f"<p class='quiet'>{escape(why)}</p>\n")
        for model in models:
            count = leaf_count(model)
            leaves = f"{count} lea{'f' if count == 1 else 'ves'}, learned from {word} times"
            title, is_open = layout_title(page.op, model.layout), count < MANY_LEAVES
            made.append(folded(title, leaves, tree_list(model), is_open=is_open))
    return "".join(made)


def _failures(page: Page) -> str:
    counts = Counter(
        (trial.outcome.kind, trial.config.variant)
        for trial in page.trials
        if isinstance(trial.outcome, Failure)
    )
    sentence = f"<p>{counts.total():,} of {len(page.trials):,} trials failed.</p>\n"
    rows = []
    for kind, meaning in FAILURES.items():
        variant_counts = {
            label(name): n for (failed, name), n in sorted(counts.items()) if failed == kind
        }
        by_variant = ", ".join(f"{name} {n:,}" for name, n in variant_counts.items())
        if variant_counts:
            rows.append(
                f"<tr><th scope='row' class='text'>{escape(kind)}</th>"
                f"<td>{sum(variant_counts.values()):,}</td>"
                f"<td class='text'>{escape(by_variant)}</td>"
                f"<td class='text'>{escape(meaning)}</td></tr>"
            )
    heads = (
        "<tr><th scope='col' class='text'>kind</th><th scope='col'>trials</th>"
        "<th scope='col' class='text'>by variant</th><th scope='col' class='text'>meaning</th></tr>"
    )
    table = f"<table><thead>{heads}</thead><tbody>{''.join(rows)}</tbody></table>"
    return sentence + (scrolled(table, "Failed configs by kind") if rows else "")


def _glossary(page: Page, lines: Sequence[Line]) -> str:
    op = operation(page.op)
    models = [model for mode in page.learned for model in page.trees(mode)]
    shown = {name for line in lines for name, _ in named_knobs(page.op, line.winner.config)}
    topics = glossary.terms(
        op,
        benches={page.bench: page.word},
        modes=dict.fromkeys(line.mode for line in lines),
        variants=variants_of(lines),
        knobs=shown,
        features=features(models),
        with_intervals=any(map(has_interval, lines)),
    )
    one_call = "".join(f"<p>{glossary.prose(text)}</p>" for text in glossary.calls(op))
    return f"<h3>One call</h3>{one_call}" + "".join(
        f"<h3>{escape(topic)}</h3>{glossary.definitions(words)}" for topic, words in topics if words
    )


def _provenance(page: Page, lines: Sequence[Line]) -> str:
    """What the rows were made with, and the measurements and runs that doubt themselves."""
    said = [
        f"{line.shape}, mode {line.mode}: {why.replace(' us', ' µs')}"
        for line in lines
        if (why := measurement(line.winner).why_unstable())
    ]
    said += [f"Run {run.id}: {why}" for run in page.runs for why in doubts(run)]
    items = "".join(f"<li>{escape(each)}</li>\n" for each in said)
    return f"<p>Versions: {escape(provenance(page.runs))}.</p>\n" + (
        f"<h3>Doubtful measurements</h3>\n<ul class='doubts'>{items}</ul>\n" if said else ""
    )
