"""The report's page as a reader sees it: opened in chromium at three widths and in both colour
schemes, with everything unfolded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from browser import NEEDED, Tab, tab
from test_report import mode, model, page, rows, timed

from tftune.db.store import read_rows
from tftune.models.tree.tree import Leaf, Node, Split
from tftune.report.report import Page, write

pytestmark = NEEDED
WIDTHS = (1400, 800, 400)
LEAST_CONTRAST = 4.5
"""The least contrast of text, by success criterion 1.4.3 of WCAG 2.2."""
SHARED = """
const seen = (e) => { const r = e.getBoundingClientRect(); return r.width && r.height };
const boxes = [...document.querySelectorAll('.scroll, figure')];
const inBox = (e) => boxes.some((box) => box !== e && box.contains(e));
const words = (e) => e.tagName + ': ' + e.textContent.trim().replace(/\\s+/g, ' ').slice(0, 60);
const leaves = [...document.querySelectorAll('body *')].filter((e) => seen(e) &&
  [...e.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()));
"""
BEYOND = """[...document.querySelectorAll('body *')].filter((e) => seen(e) && !inBox(e)
  && e.getBoundingClientRect().right > innerWidth + 0.5).map(words)"""
CLIPPED = """[...document.querySelectorAll('body *')].filter((e) => seen(e)
  && ['hidden', 'clip'].includes(getComputedStyle(e).overflowX)
  && e.scrollWidth > e.clientWidth + 1).map(words)"""
SCROLLED = "boxes.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.className || e.tagName)"
OUTSIDE = """[...document.querySelectorAll('svg')].flatMap((svg) => {
  const whole = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter((e) => {
    const r = e.getBoundingClientRect();
    return r.left < whole.left - 1 || r.right > whole.right + 1 || r.top < whole.top - 1
      || r.bottom > whole.bottom + 1 }).map(words) })"""
OVERLAPPING = """[...document.querySelectorAll('svg')].flatMap((svg) => {
  const texts = [...svg.querySelectorAll('text')].map((e) => [e, e.getBoundingClientRect()]);
  return texts.flatMap(([one, a], i) => texts.slice(i + 1).filter(([other, b]) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4
  ).map(([other]) => words(one) + ' / ' + words(other))) })"""
COLOURS = """leaves.map((e) => { let behind = e;
  const paper = (p) => getComputedStyle(p).backgroundColor;
  while (behind.parentElement && paper(behind) === 'rgba(0, 0, 0, 0)')
    behind = behind.parentElement;
  const style = getComputedStyle(e);
  return [e.namespaceURI.endsWith('svg') ? style.fill : style.color, paper(behind), words(e)] })"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, root: Path) -> dict[str, Path]:
    """Written reports: the widest operation as it was measured, with a deep tree; a modelled one
    without intervals; and one of everything that fails."""
    out = tmp_path_factory.mktemp("report")
    runs, trials = read_rows(root / "db/trials/h200x8/flash_decode-2026-11-22.jsonl.xz")
    deep = {"graph": mode(model(tree(6))), "eager": "no rows of mode eager"}
    made = {
        "measured": Page("flash_decode", "h200x8", "node", trials, runs, {}),
        "modelled": page("model", {"graph": mode(model(tree(2)))}, timed("model")),
        "small": page(learned=deep, trials=rows()),
    }
    return {name: write(each, out / name)[0] for name, each in made.items()}


def tree(levels: int) -> Node:
    leaf = Leaf((2, 1, 0), 3, 0.02, ())
    return Split("large_tiles", levels, tree(levels - 1), tree(levels - 1)) if levels else leaf


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with tab(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def ask(browser: Tab, expression: str) -> list[str]:
    """What an expression finds on the page, with all of it unfolded."""
    browser.ask("document.querySelectorAll('details').forEach((e) => { e.open = true })")
    found = browser.ask(f"(() => {{ {SHARED} return {expression} }})()")
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("name", ["measured", "modelled", "small"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_lies_beyond_the_window(
    browser: Tab, pages: dict[str, Path], name: str, width: int
) -> None:
    browser.messages.clear()
    browser.open(pages[name], width)
    assert ask(browser, BEYOND) == []
    sizes = browser.ask("[document.documentElement.scrollWidth, innerWidth]")
    assert sizes[0] <= sizes[1] == width
    assert ask(browser, CLIPPED) == []
    if width >= 800:  # no column is cut
        assert ask(browser, SCROLLED) == []
    assert browser.messages == []


@pytest.mark.parametrize("name", ["measured", "modelled", "small"])
def test_names_in_figures_neither_overlap_nor_leave_them(
    browser: Tab, pages: dict[str, Path], name: str
) -> None:
    browser.open(pages[name], 1400)
    assert len(ask(browser, "[...document.querySelectorAll('svg text')].map(words)")) > 20
    assert ask(browser, OUTSIDE) == []
    assert ask(browser, OVERLAPPING) == []


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_in_both_colour_schemes(
    browser: Tab, pages: dict[str, Path], dark: bool
) -> None:
    browser.open(pages["modelled"], 800, dark=dark)
    paper = browser.ask("getComputedStyle(document.body).backgroundColor")
    assert (luminance(paper) < 0.05) == dark
    found = {tuple(each[:2]): each[2] for each in ask(browser, COLOURS)}
    faint = [(*pair, text) for pair, text in found.items() if contrast(*pair) < LEAST_CONTRAST]
    assert len(found) > 4 and faint == []


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as a browser writes them, by WCAG's formula."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    red, green, blue = (int(value) / 255 for value in re.findall(r"\d+", colour)[:3])
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_screen_reader_finds_its_way(browser: Tab, pages: dict[str, Path]) -> None:
    """Headings descend one level at a time, figures have words, tables have heads, and a box that
    scrolls can be reached by keyboard."""
    browser.open(pages["measured"], 1400)
    levels = [
        int(name[1]) for name in ask(browser, "[...document.querySelectorAll('h1, h2, h3, h4')]"
                                     ".map((e) => e.tagName)")
    ]  # fmt: skip
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(lower - upper <= 1 for upper, lower in pairwise(levels))
    for what in ("svg:not([role=img][aria-label])", "th:not([scope])", "table:not(.scroll *)",
                 ".scroll:not([tabindex='0'][role=region][aria-label])"):  # fmt: skip
        assert ask(browser, f'[...document.querySelectorAll("{what}")].map(words)') == [], what


def test_the_test_sees_what_is_too_wide_and_what_the_console_says(
    browser: Tab, tmp_path: Path
) -> None:
    path = tmp_path / "wide.html"
    path.write_text(
        "<body><p style='width:900px'>wide</p><p style='width:50px;overflow:hidden;"
        "white-space:nowrap'>much too long to be read</p><svg width='50'>"
        "<text x='20' y='20'>outside</text><text x='22' y='20'>over</text></svg>"
        "<script>console.error('heard'); throw new Error('thrown')</script>"
    )
    browser.messages.clear()
    browser.open(path, 400)
    assert ask(browser, BEYOND) == ["P: wide"]
    assert ask(browser, CLIPPED) == ["P: much too long to be read"]
    assert ask(browser, OUTSIDE)[0] == "text: outside"
    assert ask(browser, OVERLAPPING) == ["text: outside / text: over"]
    said = "".join(browser.messages)
    assert "heard" in said and "thrown" in said
