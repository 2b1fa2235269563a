"""Why a config was selected: the path in the tree, its leaf, and the measured shapes nearest to the
one asked about."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tftune.db.discount import MODEL_ERROR, discounted
from tftune.db.evidence import measurement
from tftune.db.trial import Trial
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.artifact import Artifact
from tftune.models.compatibility import stamp
from tftune.models.facts import rules
from tftune.models.in_forms import model_of
from tftune.models.layout import LayoutModel, layout_text
from tftune.models.selection import Selection
from tftune.models.selector import Selector
from tftune.models.tree.tree import Leaf, Node
from tftune.report.tables import Line, assumptions, label, lines, over_bsp_text, variants_of

if TYPE_CHECKING:
    from tftune.models.evaluate import Evaluation, Score


@dataclass(frozen=True)
class Explanation:
    """One answer of a selector, and what it rests on."""

    shape: Shape
    mode: str
    target: str
    selection: Selection
    path: tuple[str, ...]
    """The steps in the tree, where the answer comes from there."""
    leaf: Leaf | None
    candidates: tuple[Config, ...]
    """The configs of the leaf."""
    around: dict[str, float]
    """Estimated speed-up of each variant, where the answer comes from speed-ups measured around the
    shape."""
    origin: list[str]
    """What the artifact rests on, in sentences."""
    nearest: list[Line]
    facts: tuple[str, ...] = ()
    """The trees over facts, where the answer has some."""

    def to_dict(self) -> dict[str, Any]:
        leaf = None if self.leaf is None else {
            "candidates": [config.to_dict() for config in self.candidates],
            "rows": self.leaf.rows, "error": self.leaf.error,
            "near": [list(sizes) for sizes in self.leaf.near],
        }  # fmt: skip
        return {
            "shape": str(self.shape), "mode": self.mode, "target": self.target,
            **self.selection.to_dict(), "path": list(self.path), "leaf": leaf,
            "around": {variant: round(ratio, 4) for variant, ratio in self.around.items()},
            "origin": self.origin, "facts": list(self.facts),
            "nearest": [line.to_dict() for line in self.nearest],
        }  # fmt: skip

    def sentences(self) -> Iterator[str]:
        """The answer as lines of text, without the table of the nearest shapes."""
        yield from selection_text(self.selection, self.shape, self.mode, f" on {self.target}")
        if self.leaf:
            yield "  path: " + (", then ".join(self.path) or "the tree is a single leaf")
            times = "modelled" if self.selection.source == "modelled" else "measured"
            candidates = ", ".join(map(str, self.candidates))
            yield f"  leaf: {leaf_text(self.leaf, times)}; its formulas choose among {candidates}"
        if self.around:
            ratios = ", ".join(f"{variant} {ratio:.2f}" for variant, ratio in self.around.items())
            yield f"  around it, times as fast as BSP, estimated from measured shapes: {ratios}"
        yield from self._discount()
        yield from (f"  {sentence}" for sentence in self.origin)
        if self.facts:
            yield "  by a rank's facts (docs/facts.md), the config takes a form:"
            yield from (f"    {line}" for line in self.facts)

    def _discount(self) -> Iterator[str]:
        """Both speed-ups of what the rows of this very shape predict to be the fastest."""
        for line in self.nearest[:1]:
            if line.shape == self.shape and line.ratio and line.discounted is not None:
                variant, ratio = line.winner.config.variant, line.ratio[0]
                both = f"{ratio:.2f} times as fast as BSP here, {discounted(ratio)}"
                yield f"  modelled: {variant} is {both}"


def selection_text(selection: Selection, shape: Shape, mode: str, where: str) -> Iterator[str]:
    """An answer as lines of text."""
    yield f"{selection.config}"
    yield f"  {BASIS[selection.source]}: {shape} in mode {mode}{where}"
    yield f"  why: {selection.reason}"
    if selection.expected_us is not None and selection.bsp_us is not None:
        yield f"  expected: {selection.expected_us:,.1f} us, BSP {selection.bsp_us:,.1f} us"


BASIS = {
    "measured": "measured, on this very shape",
    "interpolated": "interpolated from measured shapes, not measured itself",
    "modelled": "modelled, not measured",
    "fallback": "fallback, without evidence for this shape",
}
"""What each source of a selection means."""


def explain(
    selector: Selector, shape: Shape, mode: str, rows: Sequence[Trial], count: int = 3
) -> Explanation:
    """The selector's answer for a shape, with the `count` nearest shapes among the rows of the
    artifact's target and bench."""
    artifact = selector.artifact(shape, mode)
    selection, leaf = selector.select(shape, mode), selector.leaf(shape, mode)
    answerer = selector.answerer(shape, mode)
    mine: Sequence[Trial] = ()
    candidates: tuple[Config, ...] = ()
    if artifact:
        wanted = (artifact.target.name, artifact.bench, mode)
        mine = [row for row in rows if (row.target, row.bench, row.mode) == wanted]
        if leaf and not isinstance(answerer, str):
            candidates = _candidates(artifact, answerer.model, leaf, shape)
    facts = model_of(artifact, shape, mode, selection)
    return Explanation(
        shape=shape,
        mode=mode,
        target=artifact.target.name if artifact else "no target",
        selection=selection,
        path=selector.path(shape, mode),
        leaf=leaf,
        candidates=candidates,
        around={} if isinstance(answerer, str) else answerer.around(shape),
        origin=[*_origin(artifact, shape, mode)] if artifact else [],
        nearest=sorted(lines(mine), key=lambda line: _apart(shape, line.shape))[:count],
        facts=() if facts is None else tuple(rules(facts)),
    )


def _candidates(
    artifact: Artifact, model: LayoutModel, leaf: Leaf, shape: Shape
) -> tuple[Config, ...]:
    """The configs of a leaf; in place of a variant's default the one that it has for this shape."""
    space, chip = operation(shape.op).space, artifact.target.chip
    configs = [model.configs[number] for number in leaf.candidates]
    return tuple(dict.fromkeys(space.concrete(shape, config, chip) or config for config in configs))


def _apart(one: Shape, other: Shape) -> float:
    """Their distance; a size beyond floats is infinitely far from all."""
    from tftune.kernels.core.distance import distance

    try:
        return distance(one, other)
    except OverflowError:
        return math.inf


def _origin(artifact: Artifact, shape: Shape, mode: str) -> Iterator[str]:
    """What the artifact rests on: rows, build, and how it does on shapes held out, those like this
    one among them."""
    document = artifact.document
    versions = ", ".join(
        f"{name} {version}"
        for name, version in stamp(document).items()
        if name in ("driver", "torch", "triton")
    )
    rows = f"{document['rows']:,} rows, {document['created'][:10]}"
    yield f"artifact: {artifact.path}, digest {artifact.digest[:12]}, {rows}"
    yield f"times are of: {versions or 'no build'}"
    yield from assumptions(artifact.bench, artifact.target.name)
    modelled = "" if artifact.bench == "node" else ", both as modelled"
    if report := document["held_out"].get(mode, {}).get(layout_text(shape.op, shape.layout)):
        regret = report["selector"]["geomean_regret"]
        best = f"1 being the fastest config known{modelled}"
        mean = f"regret {regret:.3f} (geometric mean{_judged(report)})"
        yield f"held out in mode {mode}: {mean}, {best}"
        if group := report.get("groups", {}).get(shape.layer):
            yield "held out with all of {}: {:.3f}, at worst {:.3f}".format(shape.layer, *group)


def _judged(report: Mapping[str, Any]) -> str:
    """At how many of the shapes held out an answer had a time, where some had none."""
    unknown = report["selector"].get("unknown", 0)
    return (
        f" of {report['shapes'] - unknown} of {report['shapes']} shapes, "
        "the other answers having no time there"
        if unknown
        else ""
    )


def leaf_text(leaf: Leaf, times: str) -> str:
    """What a leaf rests on; `times`: measured or modelled."""
    shapes = f"{leaf.rows} {times} shape{'s' * (leaf.rows != 1)}"
    return f"{shapes}, estimated speed-ups off by {math.expm1(leaf.error):.0%} (standard deviation)"


def model_text(model: LayoutModel, held_out: Evaluation | None, times: str) -> Iterator[str]:
    """What a layout learned, as lines of text: its measured shapes, its tree, one indented line for
    each condition and leaf, and how both do on shapes held out. `times`: measured or modelled."""
    known = len(model.known)
    yield f"{model.title}: {known} {times} shapes, each answered by what was the fastest there"
    if times == "modelled":
        yield f"modelled speed-ups are divided by {MODEL_ERROR} before a fused config answers"
    if model.root is not None:
        served = "" if model.spans else f" (answers between {times} sizes of these families only)"
        yield f"tree for other shapes{served}, formulas choose among the configs of a leaf:"
        yield from _node_text(model, model.root, "  ", times)
    if held_out is not None:
        yield f"held out ({times}): {held_out}"
        regrets = ", ".join(
            f"{name} {_regret_text(score, held_out.shapes)}"
            for name, score in held_out.rules.items()
        )
        yield f"constant rules there: regret {regrets} (geomean)"


def _regret_text(score: Score, shapes: int) -> str:
    """The mean regret, and at how many of the shapes the answer had a time, where it had none at
    some."""
    known = shapes - score.unknown
    if not known:
        return "- (no time)"
    of = f" ({known} of {shapes} shapes)" if score.unknown else ""
    return f"{score.geomean_regret:.3f}{of}"


def _node_text(model: LayoutModel, node: Node, indent: str, times: str) -> Iterator[str]:
    if isinstance(node, Leaf):
        configs = " or ".join(_named(model.configs[number]) for number in node.candidates)
        yield f"{indent}{leaf_text(node, times)}: {configs}"
        return
    for child, sign in ((node.below, "<="), (node.above, ">")):
        yield f"{indent}{node.feature} {sign} {node.threshold:g}"
        yield from _node_text(model, child, indent + "  ", times)


def _named(config: Config) -> str:
    """A config; a recipe says that its knobs follow the shape."""
    return str(config) if config.knobs else f"{config.variant} by default"


def nearest_table(nearest: Sequence[Line]) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the nearest shapes: the median of each variant with its 95 % interval."""
    variants = variants_of(nearest)
    times = (f"{label(variant)} us" for variant in variants)
    winners = [label(line.winner.config.variant) for line in nearest]
    return ["nearest shape", *times, "winner", "over BSP"], [
        [str(line.shape), *_times(line, variants), winner, over_bsp_text(line)]
        for line, winner in zip(nearest, winners, strict=True)
    ]


def _times(line: Line, variants: Sequence[str]) -> Iterator[str]:
    for variant in variants:
        if variant not in line.by_variant:
            yield "-"
            continue
        measured = measurement(line.by_variant[variant])
        low, high = measured.interval_us
        yield f"{measured.median_us:,.1f}" + (f" ({low:,.1f}-{high:,.1f})" if low < high else "")
