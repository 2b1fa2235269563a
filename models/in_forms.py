"""A selection after a rank's facts: the same config in the form that the trees name. Standard
library only."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models.artifact import Artifact
from tftune.models.facts import FactsModel

if TYPE_CHECKING:
    from tftune.models.selection import Selection

KEPT = 1 << 14
"""Answers at most."""


class InForms:
    """What selections become by facts; an answer, once made, stays."""

    def __init__(self) -> None:
        self._made: dict[tuple[Any, ...], Selection] = {}

    def told(
        self, artifact: Artifact | None, shape: Shape, mode: str, found: Selection, facts: Any
    ) -> Selection:
        """The answer with the knobs that a rank may set for itself as the trees say; as it is where
        no times of several distributions stand behind it. `facts` None: what pays on average."""
        model = model_of(artifact, shape, mode, found)
        if model is None or artifact is None:
            return found
        form = model.form(shape, found.config, artifact.target.chip, facts)
        if form.is_identity:
            return found
        key = mode, shape.op, shape.key, form, facts is None, found.config
        if (known := self._made.get(key)) is None:
            if len(self._made) >= KEPT:
                self._made.clear()
            config = form.applied(shape, found.config, artifact.target.chip)
            known = self._made[key] = _in(found, config, str(form), facts, artifact.modelled)
        return known


def _in(found: Selection, config: Config, form: str, facts: Any, modelled: bool) -> Selection:
    """No row of this very shape is of that config: its time is not known, and what was measured is
    interpolated."""
    if config == found.config:
        return found
    why = "as batches are on average" if facts is None else "by this rank's facts"
    return replace(
        found,
        config=config,
        source="modelled" if modelled else "interpolated",
        reason=f"{found.reason}; {form}, {why}",
        expected_us=None,
        bsp_us=None,
        interval=None,
    )


def model_of(
    artifact: Artifact | None, shape: Shape, mode: str, found: Selection
) -> FactsModel | None:
    """The trees that stand beside an answer of this artifact; None where it has none of the shape's
    layout, or says nothing about the shape."""
    if artifact is None or found.source == "fallback":
        return None
    model = artifact.modes[mode].facts
    return model if model is not None and shape.layout in model.layouts else None


def choices(
    artifact: Artifact | None, shape: Shape, mode: str, found: Selection
) -> tuple[Config, ...]:
    """Every config that the answer may become."""
    if (model := model_of(artifact, shape, mode, found)) is None or artifact is None:
        return (found.config,)
    chip = artifact.target.chip
    return tuple(dict.fromkeys(form.applied(shape, found.config, chip) for form in model.forms))


def check_facts(shape: Shape, facts: Any) -> None:
    """Raises TypeError for what are no facts, ValueError where they cannot be this shape's, or the
    operation has none."""
    op = operation(shape.op)
    op.checked_lengths("full")
    if not isinstance(facts, op.module("lengths").Facts):
        raise TypeError(f"{facts!r:.80} are no facts of {op.name}; give tftune.Facts(...)")
    facts.check(shape)
