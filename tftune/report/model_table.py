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
        [
            answer.layer.name,
            str(answer.layer.shape.to_dict()["m"]),
            f"{answer.bsp_us:,.1f}",
            f"{answer.now_us:,.1f}",
            f"{answer.gain:.2f}",
            answer.variant,
        ]
        for answer in answers
    ]


def step_rows(steps: Iterable[Step]) -> list[list[str]]:
    """A row for each way and M."""
    return [
        [
            step.way,
            str(step.m),
            str(step.calls),
            f"{step.bsp_us:,.0f}",
            f"{step.now_us:,.0f}",
            f"{step.bsp_us - step.now_us:,.0f}",
            f"{step.bsp_us / step.now_us:.2f}",
        ]
        for step in steps
    ]
