"""The gate of promotions: candidate -> canary -> stable, stated once with its numbers.

Nodes of stage `canary` try an artifact; everybody else pulls `stable`.

| to | what must hold |
| --- | --- |
| canary | its times were measured; held out, what serves each layout loses at most `REGRET` to the oracle, less than BSP everywhere, and at most `WORSE` times what the stable artifact loses |
| stable | all of that; it is the canary; a second node's `verify` report has at least `CHECKS` checks, all of which hold, at `AGREES` of the promised speed-up or more |

A second node measured at most `SHARE` of the rows that the artifact was trained on.
"""  # noqa: E501 (a table)

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tftune.models.artifact import Artifact
from tftune.models.layout import layout_text

STAGES = ("candidate", "canary", "stable")
REGRET = 1.20
"""Geometric mean over held-out shapes of the time over the oracle's. The worst shipped layout,
eager on 8x H200, has 1.16."""
WORSE = 1.02
CHECKS = 3
AGREES = 0.95
SHARE = 0.5
ALWAYS_BSP = "always BSP"
COMPARED = 0.5
"""The share of the shapes that a tree is judged at, at which BSP everywhere must be timed, too."""


@dataclass(frozen=True)
class Check:
    """One answer that a node measured again."""

    holds: bool
    promised: float
    """The lower bound of the speed-up that the artifact's rows have."""
    speedup: float | None
    """Now; None where the config failed."""


@dataclass(frozen=True)
class Report:
    """What a `tftune verify` of one node said of an artifact."""

    node: str
    checks: tuple[Check, ...]

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Report:
        rows = (Check(row["holds"], row["promised"], row["speedup"]) for row in record["rows"])
        return cls(record["node"], tuple(rows))

    @property
    def agreement(self) -> float:
        """The geometric mean of the speed-up now over the one promised; 0 where a config
        failed."""
        if not self.checks or any(not check.speedup for check in self.checks):
            return 0.0
        logs = [math.log((check.speedup or 0.0) / check.promised) for check in self.checks]
        return math.exp(sum(logs) / len(logs))

    def why_not(self) -> str | None:
        """The sentence for which it confirms nothing, or None."""
        failed = sum(not check.holds for check in self.checks)
        if failed:
            return f"{failed} of {len(self.checks)} checks of node {self.node} do not hold"
        if len(self.checks) < CHECKS:
            return f"node {self.node} checked {len(self.checks)} answers, and {CHECKS} are needed"
        if self.agreement < AGREES:
            return (
                f"node {self.node} sees {self.agreement:.2f} of the promised speed-up, and "
                f"{AGREES} is needed"
            )
        return None


def regrets(artifact: Artifact) -> dict[str, tuple[float, float]]:
    """By mode and layout that shapes were held out of: the regret of its tree, and that of BSP
    everywhere, infinite where too few shapes have a time of the form that a rule names."""
    regret_of = {}
    for model in artifact.models():
        report = artifact.document.get("held_out", {}).get(model.mode, {}).get(model.title)
        if report is not None:
            served, bsp = report["selector"], report.get("rules", {}).get(ALWAYS_BSP, {})
            judged = [report["shapes"] - rule.get("unknown", 0) for rule in (served, bsp)]
            compared = bsp and judged[1] >= COMPARED * judged[0]
            regret_of[f"{model.mode}, {layout_text(model.op, model.layout)}"] = (
                served["geomean_regret"],
                bsp["geomean_regret"] if compared else math.inf,
            )
    return regret_of


def why_not(
    artifact: Artifact,
    to: str,
    at: str | None,
    stable: Artifact | None,
    reports: Sequence[Report],
    nodes: Mapping[str, int],
) -> str | None:
    """The sentence for which an artifact is not promoted to a stage, or None where it may be.

    `at`: the stage that it has now. `stable`: the artifact that is stable now, if any. `nodes`:
    rows that each node gave it.
    """
    if to == "stable" and at != "canary":
        return "it is not the canary; promote it to canary first"
    if artifact.bench != "node":
        return f"its times are of the {artifact.bench} bench, not measured on GPUs"
    return _why_lossy(artifact, stable) or (_why_alone(reports, nodes) if to == "stable" else None)


def _why_lossy(artifact: Artifact, stable: Artifact | None) -> str | None:
    held_out, before = regrets(artifact), regrets(stable) if stable is not None else {}
    if not held_out:
        return "no layout has enough shapes to hold any out; measure more shapes and build again"
    for name, (served, bsp) in held_out.items():
        if served > REGRET:
            return f"held out, {name} has a regret of {served:.3f}, and {REGRET} is allowed"
        if served >= bsp:
            return f"held out, {name} has a regret of {served:.3f}, and BSP everywhere {bsp:.3f}"
        if name in before and served > WORSE * before[name][0]:
            return (
                f"held out, {name} has a regret of {served:.3f}, and {WORSE} times the stable "
                f"artifact's {before[name][0]:.3f} is allowed"
            )
    return None


def _why_alone(reports: Sequence[Report], nodes: Mapping[str, int]) -> str | None:
    """The newest report of each second node counts, and all of them must agree."""
    newest = {report.node: report for report in reports}
    total = sum(nodes.values())
    second = [each for node, each in newest.items() if nodes.get(node, 0) <= SHARE * total]
    if not second:
        named = ", ".join(sorted(nodes)) or "none"
        return (
            f"no second node has verified it (its rows are of {named}); pull it there with "
            "--stage canary, run `tftune verify`, and send the report to /v1/reports"
        )
    return next((why for report in second if (why := report.why_not())), None)
