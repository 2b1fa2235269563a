"""A machine's own constants, as `tftune calibrate` measured them: a JSON file that stands over
those of kernels/core/chips.py. Standard library only."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tftune.db.files import read_file, replace_file
from tftune.db.row_checks import is_number
from tftune.db.target import Target, target_of
from tftune.kernels.core.chip import NAMES
from tftune.kernels.core.chips import CHIPS


def default_path(target: Target) -> Path:
    """Where a calibration is written unless told otherwise: in the working directory, as the
    database is."""
    return Path(f"{target.name}.chip.json")


def write_chip(
    path: Path,
    target: Target,
    constants: Mapping[str, float],
    kept: Mapping[str, str],
    build: Mapping[str, str],
    now: str,
    assumed: Mapping[str, float] | None = None,
) -> None:
    """Write the file, whole or not at all. `constants`: measured; `assumed`: what nothing measured
    and the chip lacks; `kept`: why a question left its constants as they were. A chip that is not
    in kernels/core/chips.py is described, so that other machines can read the file."""
    chip = target.chip
    document = {
        "chip": chip.name if chip.name in CHIPS else chip.description(), "target": target.name,
        "created": now, "build": dict(build), "constants": _rounded(constants),
        "assumed": _rounded(assumed or {}), "kept": dict(kept),
    }  # fmt: skip
    replace_file(
        path, json.dumps(document, indent=1) + "\n", otherwise="name another place with --out"
    )


def _rounded(constants: Mapping[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.4g}") for name, value in sorted(constants.items())}


def described(path: Path) -> Target:
    """The target of a calibration, whose chip this process knows from here on. Raises ValueError,
    naming the file and the next step, where it is none."""
    return _read(path)[1]


def calibrated(target: Target, path: Path) -> Target:
    """The target with the constants of the file. Raises ValueError, naming the file and the next
    step, where it is none, is of another machine, or holds what is no constant."""
    document, measured_on = _read(path)
    if measured_on.name != target.name:
        both = f"{measured_on}, and this is {target.name}"
        raise ValueError(f"{path} was measured on {both}; run `tftune calibrate` there")
    parts = {part: document.get(part, {}) for part in ("constants", "assumed")}
    for constants in parts.values():
        for name, value in constants.items():
            if name not in NAMES or not (is_number(value) and value > 0):
                wrong = f"{path} has {name}={value!r}, which is no constant of a chip"
                raise ValueError(f"{wrong}; run `tftune calibrate` again")
    chip = target.chip.with_constants(parts["constants"], parts["assumed"])
    return dataclasses.replace(target, chip=chip)


def _read(path: Path) -> tuple[dict[str, Any], Target]:
    """The document of a file, and its target."""
    try:
        document = json.loads(read_file(path))
        parts = [document["constants"], document.get("assumed", {})]
        if not all(isinstance(part, dict) for part in parts):
            raise TypeError("its constants must be numbers by name")
        return document, target_of(document)
    except OSError as error:
        raise ValueError(
            f"cannot read {path}: {error.strerror}; run `tftune calibrate` on the machine to "
            "write it"
        ) from error
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is no file of a calibration: it is no text ({error}); run `tftune calibrate` "
            "to write one"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{path} is no file of a calibration ({error!r}); run `tftune calibrate` to write one"
        ) from error
