"""What works on this machine: packages, GPUs, links, kernels' libraries, and whether each shipped
artifact applies here."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tftune import rocm
from tftune.report.tables import BENCH_WORDS

if TYPE_CHECKING:
    from tftune.db.target import Machine

PACKAGES = {
    "tune": (
        "optuna",
        "scikit-learn",
        "sqlite-utils",
        "numpy",
        "scipy",
        "matplotlib",
        "pyyaml",
        "typer",
        "rich",
    ),
    "cuda": ("torch", "triton", "tokenspeed-iris"),
}
"""Distributions that each extra brings."""
IMPORTED = ("triton", "iris")
"""What the kernels import: a found package is not always one that loads."""


def examine(artifacts: Sequence[Path] = ()) -> dict[str, Any]:
    """Everything that `tftune doctor` says, of the shipped artifacts and these, as JSON values.
    Nothing here fails: what does not work is told as a sentence."""
    from tftune.db.target import here

    (target, why), machine = _target(), here()
    constants, model = _constants(target)
    return {
        "python": platform.python_version(),
        "packages": {
            extra: {name: _version(name) for name in names} for extra, names in PACKAGES.items()
        },
        "imports": {name: _why_not_imported(name) or "ok" for name in IMPORTED},
        "build": _build(),
        "gpus": _gpus(),
        "target": target or None,
        "why_no_target": why,
        "rocm": list(rocm.problems()),
        "chip_file": _chip_file(target),
        "constants": constants,
        "model": model,
        "artifacts": [_artifact(path, machine, why) for path in (*_shipped(), *artifacts)],
    }


def _shipped() -> list[Path]:
    from tftune.models.artifact import SHIPPED

    return sorted(SHIPPED.glob("*.json"))


def _artifact(path: Path, machine: Machine | None, why_no_target: str) -> dict[str, Any]:
    """One artifact, every reason for which it (or some of its leaves) does not apply here, and what
    is served with a warning."""
    from tftune.models.artifact import read_artifact
    from tftune.models.compatibility import warnings, why_elsewhere
    from tftune.models.selector import Selector

    try:
        artifact = read_artifact(path)
    except ValueError as error:
        return {"file": path.name, "applies": False, "why_not": [str(error)], "warnings": []}
    elsewhere = why_elsewhere(artifact.document, machine) if machine else why_no_target
    reasons = [elsewhere] if elsewhere else []
    if artifact.modelled:
        reasons.append("its times are modelled; serve them with --allow-modelled")
    reasons += [f"{leaf} answers BSP: {why}" for leaf, why in Selector(artifact).disabled().items()]
    told = [*warnings(artifact.document, machine)]
    return {"file": path.name, "op": artifact.op, "target": artifact.target.name, "times": BENCH_WORDS[artifact.bench],
            "applies": not reasons, "why_not": reasons, "warnings": told}  # fmt: skip


def _version(name: str) -> str | None:
    """None where the package is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _why_not_imported(name: str) -> str | None:
    """A GPU library can fail in its own way while loading (a missing driver is an OSError or a
    RuntimeError)."""
    try:
        import_module(name)
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return None


def _build() -> dict[str, str]:
    from tftune.db.target import build

    return build()


def _target() -> tuple[str, str]:
    """The name of this machine's target, or the sentence that says why it has none."""
    from tftune.db.target import detect

    try:
        return detect().name, ""
    except (ValueError, ImportError) as error:
        return "", str(error)


def _constants(target: str) -> tuple[str, str]:
    """Where the model's constants for this machine are from, and why it has no model; "" and "" for
    no target."""
    from tftune.db.target import Target
    from tftune.kernels.core.chips import CHIPS

    if not target:
        return "", ""
    machine = Target.parse(target)
    off = machine.chip.why_no_model(machine.gpus)
    if machine.chip.name not in CHIPS:
        told = (
            f"{machine.chip.gpu_names[0]} is not in kernels/core/chips.py: its driver described it"
        )
        return told, off or ""
    return f"those of kernels/core/chips.py, {machine.chip.assumptions}", off or ""


def _chip_file(target: str) -> str:
    """The calibration of this machine in the working directory, or why it cannot be used; "" where
    there is none."""
    from tftune.db.calibration_file import calibrated, default_path
    from tftune.db.target import Target

    if not target or not (path := default_path(Target.parse(target))).exists():
        return ""
    try:
        calibrated(Target.parse(target), path)
    except ValueError as error:
        return str(error)
    return f"{path}, where it is given with --chip"


def _gpus() -> dict[str, Any]:
    """Names of the GPUs and how many ordered pairs can read each other's memory; empty without
    torch or GPUs."""
    try:
        import torch
    except ImportError:
        return {"names": [], "peer_pairs": 0, "pairs": 0}
    count = torch.cuda.device_count()
    pairs = [(a, b) for a in range(count) for b in range(count) if a != b]
    peers = sum(torch.cuda.can_device_access_peer(a, b) for a, b in pairs)
    return {
        "names": [torch.cuda.get_device_name(i) for i in range(count)],
        "peer_pairs": peers,
        "pairs": len(pairs),
    }


def sentences(found: dict[str, Any]) -> Iterator[str]:
    """The examination as lines of text."""
    yield f"python {found['python']}"
    for extra, versions in found["packages"].items():
        missing = [name for name, version in versions.items() if version is None]
        yield f"[{extra}] " + ", ".join(
            f"{name} {version}" for name, version in versions.items() if version
        )
        if missing:
            yield (
                f"[{extra}] not installed: {', '.join(missing)}; in a clone: pip install '.[{extra}]'"
                + _rocm(extra)
            )
    yield from (f"import {name}: {result}" for name, result in found["imports"].items())
    yield (
        "driver: "
        + (
            ", ".join(
                f"{name} {found['build'][name]}"
                for name in ("driver", "cuda", "rocm")
                if name in found["build"]
            )
            or "none"
        )
    )
    gpus = found["gpus"]
    yield f"GPUs: {', '.join(gpus['names']) or 'none'}" + (
        f"; {gpus['peer_pairs']} of {gpus['pairs']} pairs reach each other" * bool(gpus["pairs"])
    )
    yield from (f"ROCm: {problem}" for problem in found["rocm"])
    yield (
        f"target: {found['target']}"
        if found["target"]
        else f"target: none ({found['why_no_target']})"
    )
    if found["target"]:
        usual = f"{found['constants']}; `tftune calibrate` measures this machine (docs/machines.md)"
        yield f"constants: {found['chip_file'] or usual}"
        if found["model"] and not found["chip_file"]:
            yield f"model: {found['model']}; searches go without its proposals until then"
    yield from _artifact_sentences(found["artifacts"])


def _rocm(extra: str) -> str:
    return (
        " (on ROCm, torch and its Triton come from ROCm and Iris from its repository)"
        if extra == "cuda"
        else ""
    )


def _artifact_sentences(artifacts: list[dict[str, Any]]) -> Iterator[str]:
    if not artifacts:
        yield "artifacts: none is shipped; `tftune export` writes one"
    verdicts: dict[str, list[dict[str, Any]]] = {}
    for artifact in artifacts:
        verdict = (
            "applies here"
            if artifact["applies"]
            else f"does not apply here: {'; '.join(artifact['why_not'])}"
        )
        verdicts.setdefault(verdict, []).append(artifact)
    for verdict, alike in verdicts.items():
        yield f"artifact {', '.join(artifact['file'] for artifact in alike)}: {verdict}"
        yield from (
            f"  warning: {artifact['file']}: {warning}"
            for artifact in alike
            for warning in artifact["warnings"]
        )
