"""Pages are read by people who skim: the longest sentence of each is under 35 words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")),
)
LONGEST = 34
"""Words of a sentence, at most."""


def paragraphs(page: str) -> Iterator[str]:
    """The text of paragraphs and list items, without code blocks, tables and headings; what is
    written as `code` counts as one word."""
    before = ""
    for token in MarkdownIt("commonmark").enable("table").parse(page):
        if token.type == "inline" and before == "paragraph_open":
            words = {"code_inline": "code", "softbreak": " ", "hardbreak": " "}
            parts = token.children or []
            yield "".join(words.get(part.type, part.content) for part in parts)
        before = token.type


def sentences(page: str) -> Iterator[str]:
    for text in paragraphs(page):
        yield from re.split(r"(?<=[.!?])[)\"]?\s+", text)


def word_count(sentence: str) -> int:
    return len([word for word in sentence.split() if re.search(r"\w", word)])


@pytest.mark.parametrize("page", PAGES)
def test_no_sentence_is_long(page: str) -> None:
    found = list(sentences((ROOT / page).read_text()))
    assert [text for text in found if word_count(text) > LONGEST] == []


def test_a_long_sentence_is_found_wherever_it_stands() -> None:
    long = " ".join(["word"] * 40)
    parts = f"# {long}", f"- item: {long}.", f"> Short. **{long}**", f"| {long} |\n|---|"
    page = "\n\n".join([*parts, f"```sh\n{long}\n```\n"])
    assert [word_count(text) for text in sentences(page)] == [41, 1, 40]


def test_code_is_one_word_and_numbers_end_no_sentence() -> None:
    assert [word_count(text) for text in sentences("Run `a b c` for 2.5 us. It ends.")] == [5, 2]


@pytest.mark.parametrize("page", PAGES)
def test_lines_are_of_at_most_100_columns(page: str) -> None:
    """Tables and links apart, which cannot be broken."""
    lines = (ROOT / page).read_text().splitlines()
    text = re.sub(r"```.*?```", "", "\n".join(lines), flags=re.DOTALL).splitlines()
    assert [
        line for line in text if len(line) > 100 and not re.match(r"\||.*\]\(\S+\)", line)
    ] == []
