"""A machine's own constants, as `tftune calibrate` measured them: a JSON file that stands over those of kernels/chips.py. Standard library
only."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tftune.db.target import Target


def default_path(target: Target) -> Path:
    """Where a calibration is written unless told otherwise: in the working directory, as the database is."""
    return Path(f"{target.name}.chip.json")


def write_chip(
    path: Path, target: Target, constants: Mapping[str, float], kept: Mapping[str, str], build: Mapping[str, str], now: str
) -> None:
    """Write the file, whole or not at all. `kept`: why a question left its constants as they were."""
    document = {"chip": target.chip.name, "target": target.name, "created": now, "build": dict(build),
                "constants": {name: float(f"{value:.4g}") for name, value in sorted(constants.items())}, "kept": dict(kept)}  # fmt: skip
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_text(json.dumps(document, indent=1) + "\n")
    os.replace(unfinished, path)


def calibrated(target: Target, path: Path) -> Target:
    """The target with the constants of the file. Raises ValueError, naming the file and the next step, where it is none, is of another
    machine, or holds what is no constant."""
    try:
        document = json.loads(path.read_text())
        constants = document["constants"]
        measured_on = document["target"]
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}; run `tftune calibrate` on the machine to write it") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no file of a calibration ({error!r}); run `tftune calibrate` to write one") from error
    if measured_on != target.name:
        raise ValueError(f"{path} was measured on {measured_on}, and this is {target.name}; run `tftune calibrate` there")
    known = {field.name for field in dataclasses.fields(target.chip) if field.type == "float"}
    for name, value in constants.items():
        if name not in known or not _rate(value):
            raise ValueError(f"{path} has {name}={value!r}, which is no constant of a chip; run `tftune calibrate` again")
    return dataclasses.replace(target, chip=target.chip.with_constants(constants))


def _rate(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
