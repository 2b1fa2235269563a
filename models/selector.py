"""Answer `which config for this shape?` from an exported artifact: checked once when loaded, plain ifs, a dict lookup when asked again.

Standard library only. Whatever does not apply here (another operation, an unmeasured layout, another kernel, a broken rule) is answered
by BSP, the library pattern that is always right, with the reason.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from tftune.db.target import Machine, Target
from tftune.db.trial import BENCHES, MODES
from tftune.kernels.registry import operation
from tftune.kernels.shape import Shape
from tftune.kernels.source import kernel_hash
from tftune.kernels.space import Config
from tftune.models import validity
from tftune.models.features import names, vector
from tftune.models.packed import unpack
from tftune.models.plain import FAR, Find, compiled
from tftune.models.tree import Leaf, Tree

SCHEMA = 3
"""Version of the artifact's form; raised when a field changes its meaning."""
SHIPPED = Path(__file__).parent / "artifacts"
"""Where the artifacts are that come with tftune."""
FIELDS = {
    "schema": int, "op": str, "target": str, "arch": str, "build": dict, "bench": str, "modelled": bool, "kernels": dict, "rows": int,
    "rows_digest": str, "space": str, "held_out": dict, "trees": dict, "created": str, "sha256": str,
}  # fmt: skip
"""What an artifact holds; and `verified`, the stamp of `tftune verify`, where there was one."""
SIZE_BITS = 63
"""Of an integer in an artifact at most: sizes of tensors are signed 64-bit integers, and features of larger ones may overflow a float."""
MEMO = 1 << 14
"""Answers that are kept for each mode: a server of varying M may see any number of shapes."""
Source = Literal["measured", "modelled", "fallback"]


@dataclass(frozen=True)
class Selection:
    """One answer. `source`: what it rests on; "fallback" where the artifact does not apply and BSP answers without evidence."""

    config: Config
    source: Source
    reason: str


@dataclass(frozen=True, eq=False)
class Artifact:
    """The trees of one operation on one target, by mode, and what their answers depend on."""

    op: str
    target: Target
    bench: str
    trees: Mapping[str, Tree]
    document: Mapping[str, Any] = field(default_factory=dict)
    """Everything that the file says; empty where there is no file."""
    path: Path | None = None

    @property
    def modelled(self) -> bool:
        return self.bench == "model"

    @property
    def file(self) -> Path:
        """Raises ValueError where it was not read from a file."""
        if self.path is None:
            raise ValueError(f"the artifact for {self.op} on {self.target} was not read from a file")
        return self.path

    @property
    def digest(self) -> str:
        return str(self.document.get("sha256", ""))


def digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON of everything but the digest itself."""
    content = {name: value for name, value in document.items() if name != "sha256"}
    return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def read_artifact(path: Path) -> Artifact:
    """The verified artifact of a file; raises ValueError, naming the file and the next step, where it cannot be trusted."""
    try:
        document = json.loads(path.read_text())
        found = digest(document) if isinstance(document, dict) else ""
    except OSError as error:
        raise ValueError(f"cannot read the artifact {path}: {error.strerror}; run `tftune export` to write one") from error
    except RecursionError as error:
        raise ValueError(f"{path} is nested deeper than any artifact; run `tftune export` to write it again") from error
    except ValueError as error:
        raise ValueError(f"{path} is no JSON, or was cut off ({error}); run `tftune export` to write it again") from error
    if not isinstance(document, dict) or not isinstance(document.get("schema"), int):
        raise ValueError(f"{path} is no artifact of tftune: it has no schema version; run `tftune export` to write one")
    if document["schema"] != SCHEMA:
        change = "upgrade tftune" if document["schema"] > SCHEMA else "run `tftune export` again"
        raise ValueError(f"{path} has schema {document['schema']}, and this tftune reads schema {SCHEMA}; {change}")
    if document.get("sha256") != found:
        raise ValueError(
            f"{path} was edited: its content has the digest {found[:12]}, not {str(document.get('sha256'))[:12]}; "
            "run `tftune export` to write it again"
        )
    return replace(parse_artifact(document, str(path)), path=path)


def parse_artifact(document: Mapping[str, Any], name: str = "the artifact") -> Artifact:
    """The artifact of such a document; raises ValueError where it lacks something, or needs an operation or feature unknown here."""
    try:
        _check_form(document)
        op = operation(document["op"])
        trees = {mode: unpack(tree) for mode, tree in document["trees"].items()}
        for mode, tree in trees.items():
            if (tree.op, tree.mode) != (op.name, mode) or mode not in MODES:
                raise ValueError(f"it has a tree of {tree.op!r} in mode {tree.mode!r} under {mode!r}")
            if unsaid := {each.name for each in fields(op.shape)} - dict(tree.measured).keys():
                raise ValueError(f"its tree of mode {mode!r} does not say at which {min(unsaid)} it was measured")
            compiled(tree)
        return Artifact(op.name, Target.parse(document["target"]), document["bench"], trees, document)
    except KeyError as error:
        raise ValueError(f"{name} lacks {error}; run `tftune export` to write it again") from error
    except (TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ValueError(f"{name} has an unexpected form ({error}); run `tftune export` to write it again") from error
    except ValueError as error:
        raise ValueError(f"{name} does not fit this tftune: {error}") from error


def _check_form(document: Mapping[str, Any]) -> None:
    """Raises KeyError, TypeError or ValueError for a field that is missing or is not what tftune writes there."""
    for name, kind in FIELDS.items():
        if not isinstance(document[name], kind):
            raise TypeError(f"{name} is {document[name]!r:.80}")
    for name, fits in _FORMS.items():
        if name in document and not fits(document[name]):
            raise TypeError(f"{name} is {document[name]!r:.80}")
    if document["modelled"] != (document["bench"] == "model"):
        raise TypeError(f"modelled is {document['modelled']} where bench is {document['bench']!r}")
    if bits := max((value.bit_length() for value in _integers(document) if value.bit_length() > SIZE_BITS), default=0):
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
    """Whether it has what is told of an evaluation: shapes, the mean regret, answers without a time, and both regrets of each group."""
    match report:
        case {"shapes": int(), "selector": {"geomean_regret": int() | float(), "unknown": int()}}:
            groups = report.get("groups", {})
            return isinstance(groups, dict) and all(map(_is_pair, groups.values()))
    return False


def _is_pair(values: Any) -> bool:
    return isinstance(values, list) and len(values) == 2 and all(isinstance(value, int | float) for value in values)


def _is_stamp(verified: Any) -> bool:
    match verified:
        case {"at": str(), "build": build, "leaves": int()}:
            return _are_words(build)
    return False


_FORMS: dict[str, Callable[[Any], bool]] = {
    "bench": BENCHES.__contains__,
    "build": _are_words,
    "kernels": _are_words,
    "held_out": lambda reports: all(map(_is_report, reports.values())),
    "verified": _is_stamp,
}
"""What must hold of a field's value beside its type: commands read it long after loading."""


@dataclass(frozen=True)
class _Served:
    """A leaf that may answer: what it says, and why it may not for some shape."""

    selection: Selection
    why_invalid: Callable[[Shape], str | None]


class Selector:
    """Answers for one or more operations, one artifact each. An answer, once given, stays: later calls look it up."""

    def __init__(
        self,
        *artifacts: Artifact,
        allow_modelled: bool = False,
        bsp_only: str | None = None,
        check_source: bool = True,
        machine: Machine | None = None,
    ) -> None:
        """`allow_modelled`: serve leaves whose times were predicted. `bsp_only`: the sentence for which every answer is BSP.
        `check_source`: refuse leaves whose kernel's source has changed; off where rows are judged rather than served.
        `machine`: where the answers will run; None where it has no GPU, or is another than this one."""
        self.artifacts = {artifact.op: artifact for artifact in artifacts}
        self.allow_modelled = allow_modelled
        self.bsp_only = bsp_only
        self.check_source = check_source
        self.machine = machine
        self._answers: defaultdict[str, dict[tuple[Any, ...], Selection]] = defaultdict(dict)
        self._trees: dict[tuple[str, str], tuple[Find, list[_Served | None]]] = {}

    def select(self, shape: Shape, mode: str = "graph") -> Selection:
        """The config to run, and why. Never raises for a valid shape."""
        return self._answers[mode].get(shape.key) or self._first(shape, mode)

    def _first(self, shape: Shape, mode: str) -> Selection:
        find, leaves = self._trees.get((shape.op, mode)) or self._compile(shape.op, mode)
        number = find(shape)
        served = None if number is None else leaves[number]
        answer = served.selection if served and served.why_invalid(shape) is None else self._decide(shape, mode)
        answers = self._answers[mode]
        if len(answers) >= MEMO:
            answers.clear()
        answers[shape.key] = answer
        return answer

    def _compile(self, op: str, mode: str) -> tuple[Find, list[_Served | None]]:
        """The tree as a function, and what its leaves serve; where the artifact does not apply at all, a function that finds nothing."""
        artifact = self.artifacts.get(op)
        if artifact is None or self._why_closed(artifact, mode):
            found: tuple[Find, list[_Served | None]] = (lambda shape: None), []
        else:
            tree = artifact.trees[mode]
            found = compiled(tree), [self._served(artifact, leaf) for leaf in tree.answers()]
        self._trees[op, mode] = found
        return found

    def _served(self, artifact: Artifact, leaf: Leaf) -> _Served | None:
        config = leaf.bsp if leaf.abstains else leaf.config
        try:
            judge = operation(artifact.op).space.judge(config, artifact.target.chip)
        except ValueError:  # a knob that is no more: `_decide` says which
            return None
        selection = Selection(config, "modelled" if artifact.modelled else "measured", leaf.reason)
        return None if self._why_stale(artifact, leaf) else _Served(selection, judge)

    def path(self, shape: Shape, mode: str = "graph") -> tuple[str, ...]:
        """The steps in the tree, as in `m = 64 <= 100`; empty where the answer does not come from a tree."""
        return self._walk(shape, mode)[1]

    def leaf(self, shape: Shape, mode: str = "graph") -> Leaf | None:
        """The leaf of the tree, whether it is served or not; None where the tree says nothing about the shape."""
        return self._walk(shape, mode)[0]

    def _walk(self, shape: Shape, mode: str) -> tuple[Leaf | None, tuple[str, ...]]:
        artifact = self.artifacts.get(shape.op)
        if artifact is None or self._why_not(artifact, shape, mode):
            return None, ()
        return _leaf(artifact, shape, mode)

    def restricted(self, reason: str) -> Selector:
        """A selector that answers BSP for everything, with this reason: what all ranks take when they do not agree."""
        return Selector(*self.artifacts.values(), allow_modelled=self.allow_modelled, bsp_only=reason, machine=self.machine)

    def warnings(self) -> Iterator[str]:
        """What differs here from the artifacts' builds and is served all the same, a sentence for each."""
        for artifact in self.artifacts.values():
            yield from validity.warnings(artifact.document, self.machine)

    def disabled(self) -> dict[str, str]:
        """`op/variant` of every fused leaf that does not hold for this machine, or for the source installed here, and why."""
        found = {}
        for artifact in self.artifacts.values():
            for leaf in (leaf for tree in artifact.trees.values() for leaf in tree.answers()):
                if why := self._why_stale(artifact, leaf):
                    found[f"{artifact.op}/{leaf.config.variant}"] = why
        return found

    def _why_closed(self, artifact: Artifact, mode: str) -> str | None:
        """The sentence for which the artifact says nothing about any shape, or None."""
        if self.bsp_only:
            return self.bsp_only
        if artifact.modelled and not self.allow_modelled:
            return "the artifact's times are modelled, not measured; load it with allow_modelled=True (--allow-modelled) to use it"
        if mode not in artifact.trees:
            return f"mode {mode!r} was never measured for {artifact.op} on {artifact.target}; only {', '.join(artifact.trees)}"
        return None

    def _why_not(self, artifact: Artifact, shape: Shape, mode: str) -> str | None:
        """The sentence for which the artifact says nothing about this call, or None."""
        if why := self._why_closed(artifact, mode):
            return why
        for name, seen in artifact.trees[mode].measured:
            value = getattr(shape, name)
            if isinstance(value, int) and name != "world":
                least, most = int(seen[0]), int(seen[-1])
                if not least <= FAR * value or not value <= FAR * most:
                    return f"{_said(name, value)} is far from what was measured for {shape.op} on {artifact.target}: {least} to {most}"
            elif value not in seen:
                return f"{_said(name, value)} was never measured for {shape.op} on {artifact.target}; only {', '.join(map(str, seen))}"
        return None

    def _decide(self, shape: Shape, mode: str) -> Selection:
        artifact = self.artifacts.get(shape.op)
        if artifact is None:
            known = f"only for {', '.join(self.artifacts)}" if self.artifacts else f"run `tftune search {shape.op}`"
            return Selection(_bsp(shape), "fallback", self.bsp_only or f"there is no artifact for {shape.op}; {known}")
        if why := self._why_not(artifact, shape, mode):
            return Selection(_bsp(shape, artifact.target), "fallback", why)
        leaf, _ = _leaf(artifact, shape, mode)
        source: Source = "modelled" if artifact.modelled else "measured"
        if leaf.abstains:
            return Selection(_bsp(shape, artifact.target, leaf), source, leaf.reason)
        if why := self._why_stale(artifact, leaf):
            return Selection(_bsp(shape, artifact.target, leaf), "fallback", why)
        why = _why_invalid(shape, leaf.config, artifact.target)
        if why is None:
            return Selection(leaf.config, source, leaf.reason)
        said = f"{leaf.config} does not fit {shape}: {why}"
        if leaf.otherwise is None or _why_invalid(shape, leaf.otherwise, artifact.target):
            return Selection(_bsp(shape, artifact.target, leaf), "fallback", said)
        return Selection(leaf.otherwise, source, f"{said}; this is the next best nearby")

    def _why_stale(self, artifact: Artifact, leaf: Leaf) -> str | None:
        """The sentence for which a fused leaf's times do not hold for this machine or the installed source, or None."""
        if leaf.abstains or not self.check_source:
            return None
        if why := validity.why_elsewhere(artifact.document, self.machine):
            return why
        kernel = f"{artifact.op}/{leaf.config.variant}"
        try:
            installed = kernel_hash(artifact.op, leaf.config.variant)
        except (OSError, ValueError) as error:  # a name that no file can have is an OSError
            return str(error)
        if installed == leaf.kernel_hash:
            return None
        return f"the kernel {kernel} has changed: its source is {installed}, and the artifact's times are of {leaf.kernel_hash or 'none'}"


def _leaf(artifact: Artifact, shape: Shape, mode: str) -> tuple[Leaf, tuple[str, ...]]:
    features = dict(zip(names(shape.op), vector(shape.op, shape), strict=True))
    return artifact.trees[mode].answer(shape.key[1:], features)


def _said(name: str, value: int | str) -> str:
    """`m=64`; a size that no tensor has is not written out, since Python prints no integer of more than 4,300 digits."""
    large = isinstance(value, int) and value.bit_length() > SIZE_BITS
    return f"{name} of more than {SIZE_BITS} bits" if large else f"{name}={value}"


def _why_invalid(shape: Shape, config: Config, target: Target | None) -> str | None:
    """The space's sentence; a knob or value that no longer exists is one, too."""
    try:
        return operation(shape.op).space.why_invalid(shape, config, target.chip if target else None)
    except ValueError as error:
        return str(error)


def _bsp(shape: Shape, target: Target | None = None, leaf: Leaf | None = None) -> Config:
    """The leaf's best BSP form where it fits the shape, else the operation's first. Sizes beyond floats have no default, and too many
    ranks no possible form: then what is refused is the launcher's to say."""
    if leaf and _why_invalid(shape, leaf.bsp, target) is None:
        return leaf.bsp
    space, chip = operation(shape.op).space, target.chip if target else None
    try:
        forms = (config for config in space.defaults(shape, chip) if config.variant == "bsp")
        return next(form for form in forms if _why_invalid(shape, form, target) is None)
    except (ArithmeticError, StopIteration):
        return next(space.configs(shape, chip, ("bsp",)), space.complete(Config("bsp")))


def load_artifact(path: Path | str, *, allow_modelled: bool = False) -> Selector:
    """The selector of one artifact file; raises ValueError where the file cannot be trusted."""
    return Selector(read_artifact(Path(path)), allow_modelled=allow_modelled)
