"""Where a selector's artifacts come from: the user's own files, those that TFTUNE_ARTIFACTS names,
those that ship, or a fleet's service. Standard library only."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from tftune.db.target import Machine, Target
from tftune.kernels.core.shape import check_kind
from tftune.models.artifact import Artifact, read_artifact
from tftune.models.selector import Selector

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""One file, one folder, or several of either."""
VARIABLE = "TFTUNE_ARTIFACTS"
"""Files and folders that are asked before the artifacts that ship, or "none" to hide those."""
HIDE = "none"


def why_off() -> str | None:
    """The sentence for which BSP alone answers in this process, or None."""
    return "TFTUNE_OFF=1 is set" if os.environ.get("TFTUNE_OFF") == "1" else None


def selector_of(
    path: Paths | None,
    target: str | None,
    allow_modelled: bool = False,
    *,
    url: str | None = None,
    stage: str = "stable",
    ranks: int | None = None,
) -> Selector:
    """What `tftune.load` returns, without its warnings. `ranks`: of the group that will select,
    which has so many GPUs, however many this process sees. Raises TypeError for arguments of
    another kind."""
    from tftune.db.target import here

    named = "the name of a target, as in 'h200x8'", "an address, as in 'https://tune.example'"
    for name, value, expected in zip(("target", "url"), (target, url), named, strict=True):
        check_kind(name, value, str | None, expected)
    check_kind("stage", stage, str, "the name of a stage, as in 'stable'")
    check_kind("path", path, str | os.PathLike | Iterable | None, "a file, a folder, or several")
    if url is not None and path is not None:
        raise ValueError(f"load takes a path or a url, and was given {path} and {url}")
    machine = _told(here(), target, ranks)
    if url is not None:
        from tftune.client.pull import pull_all, source_at

        wanted = target if target is not None else _wanted(machine, None, ranks).name
        artifacts = pull_all(source_at(url, stage), wanted)
        _check_targets(artifacts, target)
    else:
        artifacts = [*_own(path, target), *_named_by_variable(target)]
        artifacts += _shipped(_behind(machine, target, ranks, bool(artifacts)))
    by_digest: dict[str, Artifact] = {}
    for artifact in artifacts:
        by_digest.setdefault(artifact.digest, artifact)
    distinct = by_digest.values()
    return Selector(
        *distinct, allow_modelled=allow_modelled, machine=machine, logs=True, bsp_only=why_off()
    )


def files(path: Paths) -> list[Path]:
    """The artifact files of a file, of a folder, or of several of them. Raises ValueError for a
    folder without any."""
    if not isinstance(path, str | os.PathLike):
        check_kind("path", path, Iterable, "a file, a folder, or several")
        return [file for one in path for file in files(one)]
    if not (place := Path(path)).is_dir():
        return [place]
    if candidates := [file for file in sorted(place.glob("*.json")) if _may_be_artifact(file)]:
        return candidates
    raise ValueError(f"no artifact lies in the folder {place}; `tftune tune` writes one")


def nothing_shipped(target: str) -> str:
    """The sentence for a machine without an artifact."""
    from tftune.models.artifact import SHIPPED

    shipped = ", ".join(sorted(path.stem for path in SHIPPED.glob("*.json"))) or "none"
    return (
        f"no artifact is shipped for {target}; shipped: {shipped}; run `tftune tune` there, and "
        "load the file that it writes"
    )


def _told(machine: Machine | None, target: str | None, ranks: int | None) -> Machine | None:
    """This machine as the caller knows it: a process may see some of the GPUs, or more of them than
    its group uses."""
    if machine is None or (target is None and ranks is None):
        return machine
    if target is not None:
        return replace(machine, target=target)
    try:
        chip = Target.parse(machine.target).chip
    except ValueError:  # GPUs of several kinds
        return machine
    return replace(machine, target=Target.of(chip, ranks or 1).name)


def _wanted(machine: Machine | None, target: str | None, ranks: int | None) -> Target:
    """The target whose artifacts are looked for; raises ValueError where there is none."""
    from tftune.db.target import detect

    if target is not None:
        return Target.parse(target)
    detected = detect()  # raises where there are none, or several kinds
    return Target.of(detected.chip, ranks) if ranks else detected


def _behind(
    machine: Machine | None, target: str | None, ranks: int | None, has_own: bool
) -> Target | None:
    """The target whose shipped artifacts stand behind the user's own; without own ones it must be
    known."""
    if has_own and machine is None and target is None:
        return None
    try:
        return _wanted(machine, target, ranks)
    except ValueError:
        if not has_own:
            raise
        return None


def _own(path: Paths | None, target: str | None) -> list[Artifact]:
    """The artifacts that the caller names. Raises ValueError for a named file of another target
    than asked, and where none of a folder is for it."""
    if path is None:
        return []
    if not isinstance(path, str | os.PathLike):
        check_kind("path", path, Iterable, "a file, a folder, or several")
        return [artifact for one in path for artifact in _own(one, target)]
    artifacts = [read_artifact(file) for file in files(path)]
    if Path(path).is_dir() and target is not None:
        if kept := [artifact for artifact in artifacts if artifact.target.name == target]:
            return kept
        known = ", ".join(sorted({artifact.target.name for artifact in artifacts}))
        raise ValueError(f"no artifact of the folder {path} is for {target}; they are for {known}")
    _check_targets(artifacts, target)
    return artifacts


def _check_targets(artifacts: Iterable[Artifact], target: str | None) -> None:
    for artifact in artifacts:
        if target not in (None, artifact.target.name):
            what = f"{artifact.path} is for {artifact.target}, not for {target}"
            raise ValueError(f"{what}; leave the target out, or name another file")


def _named_by_variable(target: str | None) -> list[Artifact]:
    """The artifacts of TFTUNE_ARTIFACTS that are for this target; of all targets for None."""
    given = os.environ.get(VARIABLE, "")
    if given == HIDE:
        return []
    try:
        artifacts = [
            read_artifact(file) for file in files([one for one in given.split(":") if one])
        ]
    except ValueError as error:
        raise ValueError(f"{VARIABLE}={given}: {error}") from error
    return [artifact for artifact in artifacts if target in (None, artifact.target.name)]


def _shipped(target: Target | None) -> list[Artifact]:
    """The artifacts that come with tftune for this target."""
    from tftune.models.artifact import SHIPPED

    if target is None or os.environ.get(VARIABLE) == HIDE:
        return []
    return [read_artifact(path) for path in sorted(SHIPPED.glob(f"*__{target}.json"))]


def _may_be_artifact(file: Path) -> bool:
    """Whether a JSON file of a folder is not plainly something else, such as a chip file; one that
    cannot be read is for `read_artifact` to refuse."""
    try:
        document = json.loads(file.read_text())
    except (OSError, ValueError, RecursionError):
        return True
    return isinstance(document, dict) and {"op", "modes"} <= document.keys()
