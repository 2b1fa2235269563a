"""Do an artifact's times hold on this machine, with this software? Standard library only."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from tftune.db.collectives import MULTICAST
from tftune.db.target import Machine, minor

WARNED = ("driver", "cuda", "rocm", "torch", "iris", "nccl", "rccl", "multicast")
"""Fields of a build: a difference in these is told once, and served; of a collective library one in
its minor version. A new Triton compiles other kernels, and waits for `tftune verify`."""
_BY_MINOR = ("nccl", "rccl")

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
    return why_other_kernels(document, machine) or _why_other_bsp(document, machine)


def _why_other_bsp(document: Mapping[str, Any], machine: Machine | None) -> str | None:
    """The sentence for which BSP is faster here than where an artifact was timed: its collectives
    may use multicast. Builds that do not say so were without."""
    if machine is None or not document or document["modelled"]:
        return None
    if document["target"].rpartition("x")[2] == "1":  # nothing is exchanged
        return None
    if machine.build.get("multicast", "off") in ("off", stamp(document).get("multicast", "off")):
        return None
    op = document["op"]
    return (
        "its BSP was timed without NVLink multicast, which NCCL may use here; confirm it in place "
        f"with `tftune.warm_up`, run `tftune verify {op}`, or set NCCL_NVLS_ENABLE=0"
    )


def why_other_kernels(document: Mapping[str, Any], machine: Machine | None) -> str | None:
    """The sentence for which the fused kernels of an artifact are not those of this machine, or
    None: such configs are not even worth confirming in place."""
    if machine is None or not document:
        return None
    target = document["target"]
    arch = document["arch"]
    stamped = stamp(document).get("triton")
    installed = machine.build.get("triton")
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
    if machine is None or why_elsewhere(document, machine) is not None:
        return
    if told := ", ".join(_differences(stamp(document), machine.build)):
        served = f"{document['op']} on {document['target']} is served, but here are"
        yield f"{served} {told}; check with `tftune verify`"


def _differences(stamped: Mapping[str, str], build: Mapping[str, str]) -> Iterator[str]:
    for name in WARNED:
        was, installed = stamped.get(name), build.get(name)
        same = minor if name in _BY_MINOR else str
        if was and same(was) != same(installed or ""):
            yield f"{name} {installed or 'none'} (timed with {was})"
    if "multicast" in stamped:  # older builds do not say which variables were set
        was, installed = algorithms(stamped), algorithms(build)
        if was != installed:
            yield f"{installed or 'no variables of algorithms'} (timed with {was or 'none'})"


def algorithms(build: Mapping[str, str]) -> str:
    """The variables of a build that choose algorithms, but for those of multicast, which has a
    field of its own.

    >>> algorithms({"collective_variables": "NCCL_ALGO=Ring NCCL_NVLS_ENABLE=0"})
    'NCCL_ALGO=Ring'
    """
    words = build.get("collective_variables", "").split()
    return " ".join(word for word in words if word.partition("=")[0] not in MULTICAST)
