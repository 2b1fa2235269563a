"""JSON Schemas of what commands print, made of the tables in docs/json.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs/json.md"
ROW = re.compile(
    r"^\| `(?P<field>[^`]+)` \| (?P<type>[^|]+) \| (?P<meaning>[^|]+) \|$", re.MULTILINE
)

CONFIG = {
    "type": "object",
    "required": ["variant"],
    "properties": {"variant": {"type": "string"}},
    "additionalProperties": {"type": ["integer", "string"]},
}
TYPES: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "object": {"type": "object"},
    "list": {"type": "array"},
    "config": CONFIG,
}

Schema = dict[str, Any]


def schemas(page: str) -> dict[str, Schema]:
    """By command: the schema of its section; a section of a command that has all fields of another
    one says so in its first line."""
    found: dict[str, Schema] = {}
    sections = {part.partition("\n")[0]: part for part in page.split("\n## ")[1:]}
    for command, section in sections.items():
        rows = _rows(section)
        assert rows, f"{command} has no table"
        assert len(rows) == section.count("\n| `"), f"a row of {command} is no field"
        if base := re.search(r"All fields of `([^`]+)`", section):
            rows = [*_rows(sections[base[1]]), *rows]
        found[command] = _schema(rows)
    return found


def _rows(section: str) -> list[tuple[str, str]]:
    return [(row["field"], row["type"].strip()) for row in ROW.finditer(section)]


def _schema(rows: list[tuple[str, str]]) -> Schema:
    root: Schema = {}
    for field, words in rows:
        node = root
        for token in field.replace("[]", ".[]").strip(".").split("."):
            node = _child(node, token)
        node |= _typed(words)
    return root


def _child(node: Schema, token: str) -> Schema:
    """The schema one step further down, made where there is none; nothing else may stand there."""
    if token == "[]":
        node.setdefault("type", "array")
        return node.setdefault("items", {})  # type: ignore[no-any-return]
    node.setdefault("type", "object")
    if token == "*":
        found = node.get("additionalProperties")
        node["additionalProperties"] = found if isinstance(found, dict) else {}
        return node["additionalProperties"]  # type: ignore[no-any-return]
    node.setdefault("additionalProperties", False)
    properties = node.setdefault("properties", {})
    node["required"] = [*dict.fromkeys([*node.get("required", []), token])]
    return properties.setdefault(token, {})  # type: ignore[no-any-return]


def _typed(words: str) -> Schema:
    """`list of number or null` is a list whose items may be null where it may not be so itself."""
    if words.startswith("list of "):
        item = words.removeprefix("list of ")
        kind: Any = ["array", "null"] if item.endswith(" or null") else "array"
        return {"type": kind, "items": _typed(item)}
    name, _, null = words.partition(" or ")
    schema = dict(TYPES[name])
    if null:
        schema["type"] = [schema["type"], "null"]
    return schema
