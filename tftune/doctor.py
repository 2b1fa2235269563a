"""What works on this machine: packages, GPUs, links, kernels' libraries, whether each shipped
artifact applies here, and what costs performance. Standard library only; torch, triton and iris are
imported where they are installed."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tftune import rocm
from tftune.kernels.core.grouping import groups
from tftune.report.tables import BENCH_WORDS

if TYPE_CHECKING:
    from tftune.db.target import Machine, Target
    from tftune.models.artifact import Artifact

PACKAGES = {
    "tune": (
        *("optuna", "scikit-learn", "sqlite-utils", "numpy", "scipy", "matplotlib", "pyyaml"),
        *("typer", "rich"),
    ),
    "cuda": ("torch", "triton", "tokenspeed-iris"),
}
"""Distributions that each extra brings."""
ON_ROCM = " (on ROCm, torch and its Triton come from ROCm and Iris from its repository)"
IMPORTED = ("triton", "iris")
"""What the kernels import: a found package is not always one that loads."""
VARIABLES = (
    *("TFTUNE_", "TRITON_", "TORCH", "PYTORCH_", "IRIS_", "CUDA_", "NVIDIA_", "NCCL_"),
    *("HIP_", "HSA_", "ROCR_", "RCCL_", "AMD_", "GPU_", "OMP_"),
)
"""Beginnings of the environment variables that change what runs, or how fast."""


def examine(
    artifacts: Sequence[Path] = (), environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Everything that `tftune doctor` says, of the shipped artifacts and these, as JSON values:
    what an issue needs. Nothing here fails: what does not work is told as a sentence.

    `environment`: the variables to list those of that matter.

    >>> found = examine(environment={"NCCL_NVLS_ENABLE": "0", "HOME": "/root"})
    >>> found["environment"], [name for name in ("python", "build", "problems") if name in found]
    ({'NCCL_NVLS_ENABLE': '0'}, ['python', 'build', 'problems'])
    """
    examination = _examined(artifacts, environment or {})
    return examination | {"problems": list(_problems(examination))}


def is_broken(found: Mapping[str, Any]) -> bool:
    """Whether an artifact of an examination cannot be trusted, for which `tftune doctor` returns
    1."""
    return any(artifact["broken"] for artifact in found["artifacts"])


def _examined(artifacts: Sequence[Path], environment: Mapping[str, str]) -> dict[str, Any]:
    from tftune import __version__
    from tftune.db.target import build, here, version_of
    from tftune.models.artifact import SHIPPED

    (target, why), machine, shipped = _target(), here(), sorted(SHIPPED.glob("*.json"))
    return {
        "tftune": __version__,
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {
            extra: {name: version_of(name) for name in names} for extra, names in PACKAGES.items()
        },
        "imports": {name: _why_not_imported(name) or "ok" for name in IMPORTED},
        "build": build(),
        "gpus": _gpus(),
        **_of_target(target),
        "why_no_target": why,
        "rocm": list(rocm.problems()),
        "artifacts": [_artifact(path, machine, why) for path in (*shipped, *artifacts)],
        "environment": {
            name: environment[name] for name in sorted(environment) if name.startswith(VARIABLES)
        },
    }


def _problems(found: Mapping[str, Any]) -> Iterator[str]:
    """What somebody must mend before it works, or runs as fast as it was measured to."""
    for artifact in found["artifacts"]:
        if artifact["broken"] or artifact["target"] == found["target"]:
            yield from (f"{artifact['file']}: {why}" for why in artifact["why_not"])
    yield from (f"ROCm: {problem}" for problem in found["rocm"])
    if target := found["target"]:
        failed = {name: why for name, why in found["imports"].items() if why != "ok"}
        yield from (f"{name} cannot be imported: {why}" for name, why in failed.items())
        if target not in [artifact["target"] for artifact in found["artifacts"]]:
            yield f"no artifact is for {target}: BSP runs; search here with `tftune tune`"


def _artifact(path: Path, machine: Machine | None, why_no_target: str) -> dict[str, Any]:
    """One artifact, every reason for which it (or some of its leaves) does not apply here, and what
    is served with a warning."""
    from tftune.models.artifact import read_artifact
    from tftune.models.compatibility import warnings, why_elsewhere
    from tftune.models.selector import Selector

    try:
        artifact = read_artifact(path)
    except ValueError as error:
        unknown = dict.fromkeys(("op", "target", "digest", "times"))
        why = {"applies": False, "why_not": [str(error)], "warnings": [], "layouts": {}}
        return {"file": path.name, "broken": True} | unknown | why
    elsewhere = why_elsewhere(artifact.document, machine) if machine else why_no_target
    reasons = [elsewhere] if elsewhere else []
    if artifact.modelled:
        reasons.append("its times are modelled; serve them with --allow-modelled")
    reasons += [f"{leaf} answers BSP: {why}" for leaf, why in Selector(artifact).disabled().items()]
    return {
        "file": path.name,
        "broken": False,
        "op": artifact.op,
        "target": artifact.target.name,
        "digest": artifact.digest,
        "times": BENCH_WORDS[artifact.bench],
        "layouts": _layouts(artifact),
        "applies": not reasons,
        "why_not": reasons,
        "warnings": [*warnings(artifact.document, machine)],
    }


def _layouts(artifact: Artifact) -> dict[str, list[str]]:
    """The layouts that have answers, by mode: any other one runs BSP."""
    from tftune.models.layout import layout_text

    return {
        name: [layout_text(artifact.op, layout) for layout in (*mode.layouts, *mode.lent)]
        for name, mode in artifact.modes.items()
    }


def _why_not_imported(name: str) -> str | None:
    """A GPU library can fail in its own way while loading (a missing driver is an OSError or a
    RuntimeError)."""
    try:
        import_module(name)
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return None


def _target() -> tuple[Target | None, str]:
    """This machine's target, or the sentence that says why it has none."""
    from tftune.db.target import detect

    try:
        return detect(), ""
    except (ValueError, ImportError) as error:
        return None, str(error)


def _of_target(target: Target | None) -> dict[str, Any]:
    """Its name, its GPU as compilers name it, where the model's constants for it are from, why it
    has no model, and what is said of its calibration in the working directory."""
    from tftune.kernels.core.chips import CHIPS

    if target is None:
        return {"target": None, "chip": None, "chip_file": "", "constants": "", "model": ""}
    chip = target.chip
    constants = f"those of kernels/core/chips.py, {chip.assumptions}"
    if chip.name not in CHIPS:
        described = "is not in kernels/core/chips.py: its driver described it"
        constants = f"{chip.gpu_names[0]} {described}"
    return {
        "target": target.name,
        "chip": {"name": chip.name, "arch": chip.arch},
        "chip_file": _chip_file(target),
        "constants": constants,
        "model": chip.why_no_model(target.gpus) or "",
    }


def _chip_file(target: Target) -> str:
    """The calibration of this machine in the working directory, or why it cannot be used; "" where
    there is none."""
    from tftune.db.calibration_file import calibrated, default_path

    if not (path := default_path(target)).exists():
        return ""
    try:
        calibrated(target, path)
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
    yield f"python {found['python']}, tftune {found['tftune']}, {found['system']}"
    for extra, versions in found["packages"].items():
        missing = [name for name, version in versions.items() if version is None]
        there = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
        if there:
            yield f"[{extra}] {there}"
        if missing:
            install = f"in a clone: pip install '.[{extra}]'{ON_ROCM if extra == 'cuda' else ''}"
            yield f"[{extra}] not installed: {', '.join(missing)}; {install}"
    yield from (f"import {name}: {result}" for name, result in found["imports"].items())
    build = found["build"]
    drivers = [f"{name} {build[name]}" for name in ("driver", "cuda", "rocm") if name in build]
    yield f"driver: {', '.join(drivers) or 'none'}"
    if "multicast" in build:
        yield f"collectives: {_collectives(build)}"
    gpus = found["gpus"]
    yield f"GPUs: {', '.join(gpus['names']) or 'none'}" + (
        f"; {gpus['peer_pairs']} of {gpus['pairs']} pairs reach each other" * bool(gpus["pairs"])
    )
    yield from (f"ROCm: {problem}" for problem in found["rocm"])
    none = f"none ({found['why_no_target']})"
    yield f"target: {found['target'] or none}"
    if found["target"]:
        usual = f"{found['constants']}; `tftune calibrate` measures this machine (docs/machines.md)"
        yield f"constants: {found['chip_file'] or usual}"
        if found["model"] and not found["chip_file"]:
            yield f"model: {found['model']}; searches go without its proposals until then"
    yield from _artifact_sentences(found["artifacts"])
    for artifact in found["artifacts"]:
        for mode, layouts in artifact["layouts"].items() if artifact["applies"] else ():
            yield f"  {artifact['op']}, {mode}: layouts other than {'; '.join(layouts)} run BSP"
    yield from (f"environment: {name}={value}" for name, value in found["environment"].items())
    yield from (f"problem: {problem}" for problem in found["problems"])


def _collectives(build: Mapping[str, str]) -> str:
    """What BSP's times depend on beside the GPUs."""
    library = next((f"{n} {build[n]}" for n in ("nccl", "rccl") if n in build), "no library")
    variables = build.get("collective_variables", "no variables of algorithms")
    return f"{library}, NVLink multicast {build['multicast']}, {variables}"


def _artifact_sentences(artifacts: list[dict[str, Any]]) -> Iterator[str]:
    if not artifacts:
        yield "artifacts: none is shipped; `tftune export` writes one"
    by_reasons = groups(artifacts, lambda artifact: "; ".join(artifact["why_not"]))
    for reasons, alike in by_reasons.items():
        verdict = f"does not apply here: {reasons}" if reasons else "applies here"
        yield f"artifact {', '.join(artifact['file'] for artifact in alike)}: {verdict}"
        yield from (
            f"  warning: {artifact['file']}: {warning}"
            for artifact in alike
            for warning in artifact["warnings"]
        )
