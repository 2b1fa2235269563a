"""The tables of `tftune tune --model`: each layer's times, and what whole steps gain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tftune.pipeline.answers import Answer, Step

LAYERS = ("layer", "M", "BSP us", "now us", "gain", "runs")
STEPS = ("way to run it", "M", "calls", "BSP us", "now us", "saved us", "gain")
COLUMNS = """\
M: tokens of one call, of all ranks. gain: how many times as long BSP takes, the strongest unfused
form. One step gives each of M sequences a token, or takes M tokens of a prompt; its times are those
of the calls above, as often as the model makes them. Ways are choices: they do not add."""
"""Below the tables."""


def layer_rows(answers: Iterable[Answer]) -> list[list[str]]:
    """A row for each layer and M."""
    return [
        [a.layer.name, str(a.layer.m), f"{a.bsp_us:,.1f}", f"{a.now_us:,.1f}", f"{a.gain:.2f}",
         a.selection.config.variant]
        for a in answers
    ]  # fmt: skip


def step_rows(steps: Iterable[Step]) -> list[list[str]]:
    """A row for each way and M."""
    return [
        [s.way, str(s.m), str(s.calls), f"{s.bsp_us:,.0f}", f"{s.now_us:,.0f}",
         f"{s.bsp_us - s.now_us:,.0f}", f"{s.bsp_us / s.now_us:.2f}"]
        for s in steps
    ]  # fmt: skip
