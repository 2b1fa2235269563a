"""Find or replace a text in Python source, in whatever lines its formatter put it."""

from __future__ import annotations

import re

WORD, CLOSER = re.compile(r"\w+"), re.compile(r"[)\]}]")


def replaced_once(source: str, old: str, new: str, where: str = "the source") -> str:
    """The source with `new` in the place of `old`, which must occur exactly once.

    Indentation and a line's end count where `old` begins or ends with them, so that whole lines
    can go. Elsewhere neither white space between tokens nor a comma before a closing bracket
    counts. Raises ValueError with the number of places found.

    >>> replaced_once("call(\\n    a, b,\\n)", "call(a, b)", "other(a)")
    'other(a)'
    """
    place = only_place(source, old, where)
    return source[: place.start()] + new + source[place.end() :]


def only_place(source: str, text: str, where: str = "the source") -> re.Match[str]:
    """Where a text stands that occurs once; else ValueError as above."""
    places = list(re.finditer(_pattern(text), source, re.MULTILINE))
    if len(places) != 1:
        raise ValueError(f"the text occurs {len(places)} times in {where}, not once: {text!r}")
    return places[0]


def _pattern(text: str) -> str:
    """A regular expression of the text's tokens."""
    inside = text.strip()
    indent, end = text.split(inside) if inside else (text, "")
    tokens = re.findall(r"\w+|\S", inside)
    pattern = ("^" if len(indent) > 1 else "") + re.escape(indent)
    for before, token, after in zip(["", *tokens], tokens, [*tokens[1:], ""], strict=False):
        if token == "," and CLOSER.match(after):
            continue
        if before:
            pattern += r"\s+" if WORD.match(before) and WORD.match(token) else r"\s*"
        if CLOSER.match(token):
            pattern += r"(?:,\s*)?"
        pattern += re.escape(token)
    return pattern + re.escape(end)
