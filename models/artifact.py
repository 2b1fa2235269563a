"""Read an exported artifact: a JSON file that says what was measured, on what, and whether it was
changed. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from tftune.db.files import read_file
from tftune.db.target import Target, target_of
from tftune.db.trial import BENCHES, MODES
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.registry import operation
from tftune.models import facts
from tftune.models.layout import SIZE_BITS, LayoutModel
from tftune.models.tree.codec import is_error, layout_of, unpack_layout
from tftune.models.tree.codegen import compiled

SCHEMA = 4
"""Version of the artifact's form; raised when a field changes its meaning."""
SHIPPED = Path(__file__).parent / "artifacts"
"""Where the artifacts are that come with tftune."""
FIELDS = {
    "schema": int, "op": str, "target": str, "arch": str, "build": dict, "bench": str,
    "modelled": bool, "kernels": dict, "rows": int,
    "rows_digest": str, "space": str, "held_out": dict, "modes": dict, "created": str,
    "sha256": str,
}  # fmt: skip
"""What an artifact holds; and `verified`, the stamp of `tftune verify`, where there was one, and
`chip`, the description of a GPU that kernels/core/chips.py does not have."""
Layout = tuple[int | str, ...]


@dataclass(frozen=True)
class Lent:
    """A layout that another one of the same code answers for: rows of both were seen to agree."""

    layout: Layout
    of: Layout
    """The one that was measured."""
    error: float
    """95 % of the logarithms of speed-ups differ by less."""
    pairs: int
    """A shape's sizes with a config, measured in both."""


@dataclass(frozen=True)
class Mode:
    """What an artifact says in one mode."""

    layouts: Mapping[Layout, LayoutModel]
    lent: Mapping[Layout, Lent]
    facts: facts.FactsModel | None = None
    """What is done with a rank's facts; None where times of one distribution of lengths are all
    there is."""


@dataclass(frozen=True, eq=False, repr=False)
class Artifact:
    """What one operation answers on one target, by mode, and what that depends on."""

    op: str
    target: Target
    bench: str
    modes: Mapping[str, Mode]
    document: Mapping[str, Any] = field(default_factory=dict)
    """Everything that the file says; empty where there is no file."""
    path: Path | None = None

    def __repr__(self) -> str:
        return f"<Artifact: {self.op} on {self.target}, bench {self.bench}, {self.digest[:12]}>"

    @property
    def modelled(self) -> bool:
        return self.bench == "model"

    @property
    def file(self) -> Path:
        """Raises ValueError where it was not read from a file."""
        if self.path is None:
            raise ValueError(
                f"the artifact for {self.op} on {self.target} was not read from a file"
            )
        return self.path

    @property
    def digest(self) -> str:
        return str(self.document.get("sha256", ""))

    def models(self) -> Iterator[LayoutModel]:
        """The models of every mode and layout."""
        for mode in self.modes.values():
            yield from mode.layouts.values()


def digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON of everything but the digest itself."""
    content = {name: value for name, value in document.items() if name != "sha256"}
    return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def read_artifact(path: Path) -> Artifact:
    """The verified artifact of a file; raises ValueError, naming the file and the next step, where
    it cannot be trusted."""
    try:
        document = json.loads(read_file(path))
        actual = digest(document) if isinstance(document, dict) else ""
    except OSError as error:
        raise ValueError(
            f"cannot read the artifact {path}: {error.strerror}; run `tftune export` to write one"
        ) from error
    except RecursionError as error:
        raise ValueError(
            f"{path} is nested deeper than any artifact; run `tftune export` to write it again"
        ) from error
    except ValueError as error:
        raise ValueError(
            f"{path} is no JSON, or was cut off ({error}); run `tftune export` to write it again"
        ) from error
    if not isinstance(document, dict) or not isinstance(document.get("schema"), int):
        raise ValueError(
            f"{path} is no artifact of tftune: it has no schema version; run `tftune export` to "
            "write one"
        )
    if document["schema"] != SCHEMA:
        change = "upgrade tftune" if document["schema"] > SCHEMA else "run `tftune export` again"
        raise ValueError(
            f"{path} has schema {document['schema']}, and this tftune reads schema {SCHEMA}; "
            f"{change}"
        )
    if document.get("sha256") != actual:
        raise ValueError(
            f"{path} was edited: its content has the digest {actual[:12]}, not "
            f"{str(document.get('sha256'))[:12]}; "
            "run `tftune export` to write it again"
        )
    return replace(parse_artifact(document, str(path)), path=path)


def parse_artifact(document: Mapping[str, Any], name: str = "the artifact") -> Artifact:
    """The artifact of such a document; raises ValueError where it lacks something, or needs an
    operation or feature unknown here."""
    try:
        _check_form(document)
        op = operation(document["op"])
        target = target_of(document)
        modes = {
            mode: _mode(op.name, mode, values, target.chip)
            for mode, values in document["modes"].items()
        }
        return Artifact(op.name, target, document["bench"], modes, document)
    except KeyError as error:
        raise ValueError(f"{name} lacks {error}; run `tftune export` to write it again") from error
    except (TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ValueError(
            f"{name} has an unexpected form ({error}); run `tftune export` to write it again"
        ) from error
    except ValueError as error:
        raise ValueError(f"{name} does not fit this tftune: {error}") from error


def _mode(op: str, mode: str, values: Mapping[str, Any], chip: Chip) -> Mode:
    if mode not in MODES:
        raise ValueError(f"it answers in mode {mode!r}; the modes are {', '.join(MODES)}")
    models = [unpack_layout(op, mode, each) for each in values["layouts"]]
    for model in models:
        if model.root is not None:
            compiled(op, model.root)  # a feature that is unknown here
    layouts = {model.layout: model for model in models}
    lent = [
        Lent(tuple(one["layout"]), tuple(one["of"]), float(one["error"]), int(one["pairs"]))
        for one in values["lent"]
    ]
    for one in lent:
        layout_of(op, operation(op).shape.named(one.layout))
        if not is_error(one.error):
            raise ValueError(
                f"the layout {one.layout} is lent answers with an error of {one.error}"
            )
        if one.of not in layouts:
            raise ValueError(
                f"the layout {one.layout} is answered by {one.of}, which it does not have"
            )
    told = facts.read(op, values["facts"]) if "facts" in values else None
    return Mode(layouts, {one.layout: one for one in lent}, told)


def _check_form(document: Mapping[str, Any]) -> None:
    """Raises KeyError, TypeError or ValueError for a field that is missing or is not what tftune
    writes there."""
    for name, kind in FIELDS.items():
        if not isinstance(document[name], kind):
            raise TypeError(f"{name} is {document[name]!r:.80}")
    for name, fits in _FORMS.items():
        if name in document and not fits(document[name]):
            raise TypeError(f"{name} is {document[name]!r:.80}")
    if document["modelled"] != (document["bench"] == "model"):
        raise TypeError(f"modelled is {document['modelled']} where bench is {document['bench']!r}")
    if bits := max(
        (value.bit_length() for value in _integers(document) if value.bit_length() > SIZE_BITS),
        default=0,
    ):
        raise ValueError(f"it holds an integer of {bits} bits, and sizes have {SIZE_BITS} at most")


def _integers(document: Any) -> Iterator[int]:
    """Every integer of a document, however deep it lies."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, int):
            yield value
        elif isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value


def _are_words(values: Any) -> bool:
    return isinstance(values, dict) and all(isinstance(value, str) for value in values.values())


def _is_report(report: Any) -> bool:
    """Whether it has what is told of an evaluation: shapes, the mean regret, answers without a
    time, and both regrets of each group."""
    match report:
        case {"shapes": int(), "selector": {"geomean_regret": int() | float(), "unknown": int()}}:
            groups = report.get("groups", {})
            return isinstance(groups, dict) and all(map(_is_pair, groups.values()))
    return False


def _is_pair(values: Any) -> bool:
    return (
        isinstance(values, list)
        and len(values) == 2
        and all(isinstance(value, int | float) for value in values)
    )


def _are_reports(reports: Any) -> bool:
    """By mode, then by layout."""
    return all(
        isinstance(each, dict) and all(map(_is_report, each.values())) for each in reports.values()
    )


def _is_stamp(verified: Any) -> bool:
    match verified:
        case {"at": str(), "build": build, "leaves": int()}:
            return _are_words(build)
    return False


_FORMS: dict[str, Callable[[Any], bool]] = {
    "bench": BENCHES.__contains__,
    "build": _are_words,
    "kernels": _are_words,
    "held_out": _are_reports,
    "verified": _is_stamp,
}
"""What must hold of a field's value beside its type: commands read it long after loading."""
