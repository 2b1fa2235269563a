"""Do an artifact's times hold on this machine, with this software? Standard library only."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from tftune.db.target import Machine, minor

WARNED = ("driver", "cuda", "rocm", "torch", "iris")
"""Of a build: a difference in these is told once, and served. A new Triton compiles other kernels,
and waits for `tftune verify`."""

_LOGGED = set[str]()


def log_once(cause: str, sentence: str = "") -> None:
    """Log what costs performance: a warning of the logger `tftune`, one in this process for each
    cause, however many calls meet it. `sentence`: where the cause alone does not say all."""
    if cause not in _LOGGED:
        _LOGGED.add(cause)
        logging.getLogger("tftune").warning("%s", sentence or cause)


def stamp(document: Mapping[str, Any]) -> Mapping[str, str]:
    """The build that the artifact's times are known to hold for: that of the last `tftune verify`,
    else that of its rows."""
    build: Mapping[str, str] = document.get("verified", document).get("build", {})
    return build


def why_elsewhere(document: Mapping[str, Any], machine: Machine | None) -> str | None:
    """The sentence for which no fused leaf of an artifact may serve on this machine, or None.
    Without a GPU nothing differs."""
    if machine is None or not document:
        return None
    target, arch, stamped, installed = (
        document["target"],
        document["arch"],
        stamp(document).get("triton"),
        machine.build.get("triton"),
    )
    if machine.target != target:
        return (
            f"the artifact is for {target}, and this machine is {machine.target}; measure here "
            f"with `tftune search {document['op']}`"
        )
    if machine.arch != arch:
        return (
            f"the artifact is for {arch}, and this GPU is {machine.arch}; measure here with "
            f"`tftune search {document['op']}`"
        )
    if not stamped:
        said = (
            "the artifact does not say with which Triton its times were taken; run `tftune "
            f"verify {document['op']}`"
        )
        return None if document["modelled"] else said
    if minor(stamped) != minor(installed or ""):
        return (
            f"its kernels were timed as Triton {stamped} compiles them, and "
            f"{f'Triton {installed}' if installed else 'no Triton'} "
            f"is installed; run `tftune verify {document['op']}`"
        )
    return None


def warnings(document: Mapping[str, Any], machine: Machine | None) -> Iterator[str]:
    """What differs from the artifact's build and is served all the same, a sentence in all."""
    stamped = stamp(document)
    if machine is not None and why_elsewhere(document, machine) is None:
        pairs = [(name, stamped.get(name), machine.build.get(name)) for name in WARNED]
        if told := [
            f"{name} {installed or 'none'} (timed with {was})"
            for name, was, installed in pairs
            if was and was != installed
        ]:
            yield (
                f"{document['op']} on {document['target']} is served, but here are "
                f"{', '.join(told)}; check with `tftune verify`"
            )
