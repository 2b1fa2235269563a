"""Runs and trials as the columns of their tables."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from tftune.db.trial import TEXTS, Run, Trial

_PACKED = ("build", "clocks", "ended")
"""Fields of `Run` that are columns of JSON."""


def difference(row: dict[str, Any], expected: dict[str, Any]) -> str:
    """How a stored row differs from what its content says."""
    column = next(name for name in row if row[name] != expected[name])
    return f"was changed: {column} is {row[column]}, its content says {expected[column]}"


def run_row(run: Run) -> dict[str, Any]:
    """The columns of a run."""
    packed = {name: json.dumps(getattr(run, name), sort_keys=True) for name in _PACKED}
    return dataclasses.asdict(run) | packed


def run_of(row: dict[str, Any]) -> Run:
    """The run of such columns; raises KeyError or ValueError where they are none."""
    return Run.from_dict(row | {name: _unpacked(row, name) for name in _PACKED})


def _unpacked(row: dict[str, Any], name: str) -> Any:
    try:
        return json.loads(row[name])
    except (RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"{name} is no JSON: {error}") from error


def trial_row(trial: Trial) -> dict[str, Any]:
    """The columns of a trial, without its number."""
    row = trial.to_dict()
    return {name: row[name] for name in TEXTS} | {
        "id": trial.id,
        "variant": trial.config.variant,
        "condition": trial.condition,
        "config": json.dumps(row["config"], sort_keys=True),
        "failure": row.get("failure"),
        "text": row.get("text"),
        "samples_us": json.dumps(row["us"]) if "us" in row else None,
        "bsp_samples_us": json.dumps(row["bsp_us"]) if "us" in row else None,
        "check_error": row.get("check_error"),
        "stopped_early": int(row.get("stopped_early", False)) if "us" in row else None,
    }


def trial_of(row: dict[str, Any]) -> Trial:
    """The trial of such columns; raises KeyError or ValueError where they are none."""
    same = {name: row[name] for name in (*TEXTS, "condition")} | {
        "config": _unpacked(row, "config")
    }
    if row["failure"] is not None:
        return Trial.from_dict(same | {"failure": row["failure"], "text": row["text"]})
    same |= {"us": _unpacked(row, "samples_us"), "bsp_us": _unpacked(row, "bsp_samples_us")}
    stopped = bool(row["stopped_early"])
    return Trial.from_dict(same | {"check_error": row["check_error"], "stopped_early": stopped})
