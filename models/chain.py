"""Which of a selector's artifacts answers for a layout, and for what reason one does not. Standard
library only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tftune.db.target import Machine
from tftune.kernels.core.revision import installed
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.models import compatibility
from tftune.models.artifact import Artifact, Layout
from tftune.models.layout import layout_text, size_text


@dataclass(frozen=True)
class Chain:
    """Every artifact of a selector, the one that is asked first at the front, and what the selector
    was told of them."""

    artifacts: tuple[Artifact, ...]
    allow_modelled: bool = False
    bsp_only: str | None = None
    check_source: bool = True
    machine: Machine | None = None

    def of(self, op: str) -> tuple[Artifact, ...]:
        """The artifacts of one operation, the first to be asked first."""
        return tuple(artifact for artifact in self.artifacts if artifact.op == op)

    def answering(self, op: str, mode: str, layout: Layout) -> Artifact | None:
        """The first artifact that has the layout in this mode, or None. One whose times do not hold
        on this machine answers only where no other one has the layout."""
        able = [
            artifact
            for artifact in self.of(op)
            if self._why_closed(artifact, mode) is None and layout in _layouts(artifact, mode)
        ]
        here = (artifact for artifact in able if self._why_elsewhere(artifact) is None)
        return next(here, able[0] if able else None)

    def why_silent(self, shape: Shape, mode: str) -> str:
        """The sentence for which no artifact answers for the layout of a shape."""
        if self.bsp_only:
            return self.bsp_only
        if not (asked := self.of(shape.op)):
            return self._why_none(shape.op)
        first, *others = asked
        why = self._why_closed(first, mode) or _why_unmeasured(first, shape, mode)
        names = ", ".join(map(_name, others))
        return f"{why} in {_name(first)}, and {names} cannot answer, either" if others else why

    def _why_none(self, op: str) -> str:
        known = ", ".join(dict.fromkeys(artifact.op for artifact in self.artifacts))
        only = f", only for {known}" if known else ""
        where = f" on {self.machine.target}" if self.machine else ""
        return (
            f"there is no artifact for {op}{where}{only}; `tftune.warm_up` measures in place, and "
            f"`tftune tune {op}` writes an artifact"
        )

    def _why_closed(self, artifact: Artifact, mode: str) -> str | None:
        """The sentence for which the artifact says nothing about any shape, or None."""
        if self.bsp_only:
            return self.bsp_only
        if artifact.modelled and not self.allow_modelled:
            return (
                "the artifact's times are modelled, not measured; load it with "
                "allow_modelled=True (--allow-modelled) to use it"
            )
        if mode not in artifact.modes:
            return (
                f"mode {mode!r} was never measured for {artifact.op} on {artifact.target}; only "
                f"{', '.join(artifact.modes)}"
            )
        return None

    def _why_elsewhere(self, artifact: Artifact) -> str | None:
        if not self.check_source:
            return None
        return compatibility.why_elsewhere(artifact.document, self.machine)

    def why_stale(
        self, artifact: Artifact, config: Config, kernel: str, *, proposed: bool = False
    ) -> str | None:
        """The sentence for which a fused config's times do not hold for this machine or the
        installed code, or None. `kernel`: the revision of its variant that was measured; "" for
        that of the artifact. `proposed`: only to be timed here beside BSP, whatever BSP it was
        timed beside before."""
        if not self.check_source:
            return None
        judge = compatibility.why_other_kernels if proposed else compatibility.why_elsewhere
        if why := judge(artifact.document, self.machine):
            return why
        measured = kernel or artifact.document.get("kernels", {}).get(config.variant, "")
        try:
            here = installed(artifact.op, config.variant)
        except ValueError as error:
            return str(error)
        if here == measured:
            return None
        name = f"{artifact.op}/{config.variant}"
        return (
            f"{name} has changed: its revision here is {here}, and the artifact's times are of "
            f"{measured or 'none'}"
        )

    def warnings(self) -> Iterator[str]:
        """What differs here from the artifacts' builds and is served all the same, a sentence for
        each artifact that answers for anything."""
        for artifact in self._heard():
            yield from compatibility.warnings(artifact.document, self.machine)

    def disabled(self) -> dict[str, str]:
        """`op/variant` of every fused variant whose times do not hold for this machine, or for the
        source installed here, and why; of artifacts that answer for anything."""
        reasons: dict[str, str] = {}
        for artifact in self._heard():
            for config, kernel in _fused(artifact):
                if why := self.why_stale(artifact, config, kernel):
                    reasons.setdefault(f"{artifact.op}/{config.variant}", why)
        return reasons

    def _heard(self) -> Iterator[Artifact]:
        """Every artifact but those of which another one has all layouts."""
        for artifact in self.artifacts:
            answering = [
                self.answering(artifact.op, mode, layout)
                for mode in artifact.modes
                for layout in _layouts(artifact, mode)
            ]
            if not answering or any(first in (None, artifact) for first in answering):
                yield artifact


def _fused(artifact: Artifact) -> Iterator[tuple[Config, str]]:
    """The fused configs of an artifact, with the revisions that were measured."""
    for model in artifact.models():
        pairs = zip(model.configs, model.kernels, strict=True)
        yield from (pair for pair in pairs if pair[0].variant != "bsp")


def _layouts(artifact: Artifact, mode: str) -> set[Layout]:
    """The layouts that an artifact answers for in a mode, by its own rows or by lent ones."""
    of_mode = artifact.modes[mode]
    return {*of_mode.layouts, *of_mode.lent}


def _name(artifact: Artifact) -> str:
    return artifact.path.name if artifact.path else f"the artifact for {artifact.target}"


def _why_unmeasured(artifact: Artifact, shape: Shape, mode: str) -> str:
    of_mode, named = artifact.modes[mode], shape.named(shape.layout)
    measured = "; ".join(layout_text(shape.op, one) for one in [*of_mode.layouts, *of_mode.lent])
    asked = ",".join(map(size_text, named, named.values()))
    return f"{asked} was never measured for {shape.op} on {artifact.target}; only {measured}"
