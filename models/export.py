"""Write what was learned, with where it comes from, as a JSON file that says if it was changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from tftune.db.files import replace_file
from tftune.db.target import Target
from tftune.db.trial import now
from tftune.kernels.core.chips import CHIPS
from tftune.kernels.core.registry import operation
from tftune.models.artifact import SCHEMA, SHIPPED, Mode, digest
from tftune.models.dataset import Dataset
from tftune.models.tree.codec import pack_layout

DEEPEST = 4
"""Blanks before a line at most: a tree is nested deeper than that."""
LINE = 240
"""Characters of a line of the file at most, as far as it can be broken between objects and
lists."""


@dataclass(frozen=True)
class Provenance:
    """Where the answers of one artifact come from."""

    op: str
    target: str
    bench: str
    build: Mapping[str, str]
    """Versions of what the rows were measured with."""
    kernels: Mapping[str, str]
    """The revision of each variant."""
    rows: int
    rows_digest: str
    held_out: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By mode and layout: the evaluation on shapes that were held out."""
    created: str = ""
    """UTC, ISO 8601; now where empty."""


def provenance(
    datasets: Mapping[str, Dataset],
    reports: Mapping[str, Mapping[str, Mapping[str, Any]]],
    build: Mapping[str, str],
) -> Provenance:
    """Where answers of these datasets (by mode) come from; raises ValueError where the modes were
    measured with different things."""
    if not datasets:
        raise ValueError("there is no dataset to export; run `tftune search` first")
    parts = list(datasets.values())
    first = parts[0]
    kernels: dict[str, str] = {}
    for part in parts:
        if (part.op, part.target, part.bench) != (first.op, first.target, first.bench):
            raise ValueError(
                f"{part.op} on {part.target} ({part.bench}) and {first.op} on {first.target} "
                f"({first.bench}) are two artifacts"
            )
        for variant, revision in part.kernels.items():
            if kernels.setdefault(variant, revision) != revision:
                raise ValueError(
                    f"the modes {', '.join(datasets)} were measured with different revisions of "
                    f"{variant} ({kernels[variant]}, {revision}); "
                    f"run `tftune search {part.op} --mode both` again"
                )
    joined = sha256(" ".join(part.rows_digest for part in parts).encode()).hexdigest()[:16]
    rows = sum(part.rows for part in parts)
    return Provenance(
        first.op, first.target, first.bench, dict(build), kernels, rows, joined, reports
    )


def artifact_path(op: str, target: str) -> Path:
    """Where the artifact of an operation on a target is shipped."""
    return SHIPPED / f"{op}__{target}.json"


def document(modes: Mapping[str, Mode], origin: Provenance) -> dict[str, Any]:
    """The artifact as plain data, with its digest."""
    fields = asdict(origin) | {"created": origin.created or now("seconds")}
    chip = Target.parse(origin.target).chip
    content = {
        "schema": SCHEMA,
        **fields,
        "arch": chip.arch,
        **({} if chip.name in CHIPS else {"chip": chip.description()}),
        "modelled": origin.bench == "model",
        "space": operation(origin.op).space.digest(),
        "modes": {name: pack_mode(mode) for name, mode in modes.items()},
    }
    plain: dict[str, Any] = json.loads(json.dumps(content))
    return plain | {"sha256": digest(plain)}


def pack_mode(mode: Mode) -> dict[str, Any]:
    """What an artifact says in one mode, as plain data."""
    lent = [
        {"layout": list(one.layout), "of": list(one.of), "error": one.error, "pairs": one.pairs}
        for one in mode.lent.values()
    ]
    told = {} if mode.facts is None else {"facts": mode.facts.to_dict()}
    return {"layouts": [pack_layout(model) for model in mode.layouts.values()], "lent": lent} | told


def export(modes: Mapping[str, Mode], path: Path | None, origin: Provenance) -> Path:
    """Write the artifact of these modes; `path` None: where artifacts are shipped. Returns the
    path."""
    return write(document(modes, origin), path or artifact_path(origin.op, origin.target))


def stamped(content: Mapping[str, Any], build: Mapping[str, str], leaves: int) -> dict[str, Any]:
    """The document after so many of its answers were found to hold with this build; what the rows
    were measured with stays."""
    verified = {"at": now("seconds"), "build": dict(build), "leaves": leaves}
    updated: dict[str, Any] = {**content, "verified": verified}
    return updated | {"sha256": digest(updated)}


def write(content: Mapping[str, Any], path: Path) -> Path:
    """Write a document, at once or not at all."""
    replace_file(
        path, text_of(content), what="the artifact ", make_folder=True,
        otherwise="name another place with --out",
    )  # fmt: skip
    return path


def text_of(content: Mapping[str, Any]) -> str:
    """The whole file of a document."""
    return _text(content) + "\n"


def _text(value: Any, indent: str = "") -> str:
    """JSON with each measured shape, each small object and each flat list on a line of its own.

    >>> print(_text({"a": 1, "b": {"c": [1, 2], "d": {}}}))
    {
     "a": 1,
     "b": {"c":[1,2],"d":{}}
    }
    """
    line = json.dumps(value, separators=(",", ":"))
    nested = isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(part, dict | list) for part in value)
    )
    if not nested or not value or (indent and len(line) <= LINE):
        return line
    deeper = indent + " " if len(indent) < DEEPEST else indent
    if isinstance(value, list):
        return "[\n" + ",\n".join(deeper + _text(part, deeper) for part in value) + f"\n{indent}]"
    inner = ",\n".join(
        f"{deeper}{json.dumps(name)}: {_text(part, deeper)}" for name, part in value.items()
    )
    return f"{{\n{inner}\n{indent}}}"
