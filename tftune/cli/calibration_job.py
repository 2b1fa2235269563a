"""A calibration as the command line runs it: a line for whatever was measured, assumed, or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tftune.db.target import Target


@dataclass(frozen=True)
class Calibration:
    """What came of the questions so far."""

    target: Target
    measured: dict[str, float] = field(default_factory=dict)
    assumed: dict[str, float] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    """By question: why it gave nothing."""

    def lines(self, emulated: bool) -> Iterator[str]:
        """Ask, and say what came of each question."""
        from tftune.tuner.calibration.calibrate import ASSUMED, NO_PEER, calibrate

        for question, answer in calibrate(self.target, emulated):
            if isinstance(answer, str):
                self.kept[question] = answer
                left_out = answer == NO_PEER
                yield f"{question}: {'' if left_out else 'nothing measured, since '}{answer}"
                continue
            (self.assumed if question == ASSUMED else self.measured).update(answer)
            yield from (self._line(question, name, value) for name, value in answer.items())

    def _line(self, question: str, name: str, value: float) -> str:
        from tftune.tuner.calibration.assumptions import RULES
        from tftune.tuner.calibration.calibrate import ASSUMED

        if question == ASSUMED:
            return f"assumed: {name} = {value:.4g} ({RULES[name][0]})"
        before = self.target.chip.constant(name)
        known = "unknown" if before is None else f"{before:.4g}"
        return f"{question}: {name} = {value:.4g} (kernels/core/chips.py: {known})"

    def summary(self, path: Path, emulated: bool) -> str:
        """How much of the model rests on what, and whether there is one now."""
        count = f"{len(self.measured)} constants of {self.target.name} in {path}"
        if emulated:
            return f"{count}; a rehearsal: nothing was measured"
        chip = self.target.chip.with_constants(self.measured, self.assumed)
        if missing := chip.missing(self.target.gpus):
            lacking = f"{', '.join(missing)} could not be measured: the model stays off"
            return f"{count}; {lacking}; see that no process holds a GPU, and calibrate again"
        return f"{count}; {chip.assumptions}; use them with `tftune search --chip {path}`"
