"""What a search is for and where it measures: the target, the GPUs it may use, the bench, and rows
that answer instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tftune.db.evidence import counting
from tftune.db.target import Target, detect
from tftune.db.trial import Trial
from tftune.kernels.core.distance import distance
from tftune.kernels.core.registry import Operation, operation, payload_bytes
from tftune.kernels.core.shape import Shape

if TYPE_CHECKING:
    from tftune.db.store import Store
    from tftune.models.artifact import Artifact
    from tftune.tuner.bench.benches import Bench
    from tftune.tuner.bench.faults import Drill

UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}
FORMER = 4000
"""Committed rows that a search is told for each of its shapes, the nearest ones: more are not used
(`tuner.correction`), and cost a quarter of a minute."""


def seconds(text: str, option: str = "--budget") -> float:
    """A duration such as 90s, 10m, 2h or 45 (seconds); raises ValueError, naming the option, for
    anything else, and for none at all.

    >>> seconds("10m")
    600.0
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.strip())
    if not match or not float(match[1]):
        raise ValueError(f"{option} {text!r} is no duration; give one such as 90s, 10m or 2h")
    return float(match[1]) * UNITS[match[2]]


def find_target(
    on: str, name: str | None, chip: Path | None = None, db: Path | None = None
) -> Target:
    """The target of a search, with the constants of a calibration where there is one; raises
    ValueError where they do not agree. `db`: where rows may describe a GPU whose name nothing else
    here knows."""
    if chip is None:
        return _named_or_found(on, name, db)
    from tftune.db.calibration_file import calibrated, described

    described(chip)  # its GPU may be known by nothing else here
    return calibrated(_named_or_found(on, name, db), chip)


def _named_or_found(on: str, name: str | None, db: Path | None) -> Target:
    """Found out on a node, where a name given must agree, and named elsewhere."""
    if on != "node":
        if name is None:
            raise ValueError(
                f"--on {on} needs --target, the machine to ask about, such as --target mi300x8"
            )
        return named(name, db)
    here = detect()
    given = named(name, db) if name else None
    if given and given.name != here.name:
        raise ValueError(
            f"--target {given.name} differs from this machine, {here.name}; "
            "leave it out, or give --on model"
        )
    return here


def named(name: str, db: Path | None) -> Target:
    """The target of that name, which the rows of a database may make known."""
    try:
        return Target.parse(name)
    except ValueError:
        if db is None or not db.exists():
            raise
    from tftune.db.store import Store

    with Store.open(db, write=False) as store:
        store.runs()
    return Target.parse(name)


def name_in_rows(name: str, db: Path) -> str:
    """The name of a target whose rows are asked for: rows may have one that nothing describes.
    Raises ValueError where the database has no rows of it either."""
    try:
        return named(name, db).name
    except ValueError:
        if not db.exists():
            raise
        from tftune.db.store import Store

        with Store.open(db, write=False) as store:
            if not store.query("SELECT 1 FROM tft_trials WHERE target = :name", {"name": name}):
                raise
    return name


def check_worlds(shapes: Sequence[Shape], target: Target, gpus: int | None) -> None:
    """Raises ValueError where a shape, or `--gpus`, asks for more GPUs than there are."""
    if gpus is not None and gpus > target.gpus:
        raise ValueError(f"--gpus {gpus} is more than the {target.gpus} GPUs of {target.name}")
    there, where = (target.gpus, target.name) if gpus is None else (gpus, f"--gpus {gpus}")
    for shape in shapes:
        if (world := world_of(shape)) > there:
            raise ValueError(
                f"{world=} of {shape} is larger than the {there} GPUs of {where}; "
                f"give shapes with world={there}"
            )


def world_of(*shapes: Shape) -> int:
    """The ranks of the shape that has most; 1 where an operation runs on one GPU."""
    return max(int(getattr(shape, "world", 1)) for shape in shapes)


def lengths_of(known: Operation, text: str) -> list[str]:
    """What `--lengths` names, each as rows have it: empty for full sequences. Raises ValueError for
    an unknown distribution, and for any in an operation without lengths."""
    lengths = []
    for name in text.split(","):
        spelt = "" if name == "full" else known.checked_lengths(name)
        lengths.append("" if spelt == "full" else spelt)
    return list(dict.fromkeys(lengths))


def make_drill(inject: str | None, seed: int, on: str) -> Drill | None:
    """The drill that --inject asks for; raises ValueError where it is none, or where there are no
    ranks that could go wrong."""
    if inject is None:
        return None
    if on != "node":
        raise ValueError(
            "--inject needs --on node, whose ranks run into the faults; "
            f"it was given with --on {on}"
        )
    from tftune.tuner.bench.faults import Drill

    return Drill.parse(inject, seed)


def measured_here(op: str, path: Path | None) -> Artifact:
    """The artifact of this file, or the one shipped for this machine, whose times can be measured
    again here; raises ValueError where they cannot: no GPU, another machine, or times that never
    were measured."""
    from tftune.models.artifact import SHIPPED, read_artifact

    here = detect()
    artifact = read_artifact(path or SHIPPED / f"{operation(op).name}__{here}.json")
    if (artifact.op, artifact.target.name, artifact.modelled) != (op, here.name, False):
        times = "modelled" if artifact.modelled else "measured"
        raise ValueError(
            f"{artifact.path} has {times} times of {artifact.op} on {artifact.target}, and this "
            f"machine is {here}: there is nothing to measure again; run `tftune search {op}`"
        )
    return artifact


def make_bench(
    on: str,
    known: Operation,
    target: Target,
    shapes: Sequence[Shape],
    store: Store,
    drill: Drill | None = None,
    matrix: bool = False,
    lengths: str = "",
) -> Bench:
    """The bench of that name, a node's sized for the largest shape; with fewer rounds where a whole
    matrix of configs is measured. `lengths`: of the sequences of every call, where given.

    Raises ValueError where there is nothing to replay, where the chip has no model, or where the
    store holds another drill.
    """
    from tftune.db.evidence import completed
    from tftune.tuner.bench.benches import ModelBench, ReplayBench

    if on == "model":
        from tftune.models.timeline.simulator import predict

        if sentence := target.chip.why_no_model(world_of(*shapes)):
            raise ValueError(f"--on model --target {target}: {sentence}")
        return ModelBench(target, predict, lengths)
    if on == "replay":
        if lengths:
            raise ValueError(
                f"--on replay answers from rows of full sequences, and --lengths {lengths} was "
                "given; leave one of them out"
            )
        rows = stored_or_committed(store, known.name, target.name, "node")
        if not rows:
            raise ValueError(
                f"no measured rows of {known.name} on {target.name} to replay; "
                f"fill {store.path} with `tftune trials import`"
            )
        return ReplayBench(target, completed(known.space, rows))
    from tftune.tuner.bench.node import NodeBench
    from tftune.tuner.bench.rounds import MATRIX, Rounds

    payload = payload_bytes(*shapes)
    if drill is None:
        rounds = MATRIX if matrix else Rounds()
        return NodeBench(target, payload, rounds=rounds, lengths=lengths)
    drill.refuse_another(
        store.trials(op=known.name, target=target.name, bench="drill"), str(store.path)
    )
    return NodeBench(target, payload, inject=drill.fault, lengths=lengths)


def stored_or_committed(store: Store | None, op: str, target: str, bench: str) -> list[Trial]:
    """The rows of one target and bench that count (`evidence.counting`) in the database, else those
    that come with a checkout under db/trials."""
    from tftune.db.committed import files_of, read_trials

    kept = store.trials(op=op, target=target, bench=bench) if store else []
    stored = counting(kept, store.runs()) if store else []
    return stored or [row for row in read_trials(files_of(op, target)) if row.bench == bench]


def former_rows(op: str, target: Target, shapes: Sequence[Shape]) -> list[Trial]:
    """The measured rows nearest to these shapes that come with a checkout, superseded ones
    included, of the target's relatives: GPUs of the same architecture (H100, H200 and GH200),
    however many. They are of whatever kernels and worlds, so only hints, which a search can do
    without: an artifact of a relative never answers."""
    from tftune.db.committed import files_of, targets
    from tftune.db.store import read_trials_of

    alike = [name for name in targets(op) if _arch(name) == target.chip.arch]
    paths = [path for name in alike for path in files_of(op, name)]
    return read_trials_of(
        paths, lambda rows: {near for shape in shapes for near in nearest(shape, rows)}
    )


def nearest(shape: Shape, rows: Mapping[Shape, int]) -> Iterator[Shape]:
    """The nearest shapes that have rows, until they have `FORMER` rows in sum. `rows`: how many
    each has."""
    left = FORMER
    for other in sorted(rows, key=lambda other: distance(shape, other)):
        if left <= 0:
            return
        yield other
        left -= rows[other]


def _arch(target: str) -> str:
    """The architecture of a machine whose rows are committed; "" where nothing says it. Rows of a
    GPU that is not in kernels/core/chips.py describe it."""
    from tftune.db.committed import files_of, read_files

    for learn in (False, True):
        try:
            if learn:
                read_files(files_of(target=target))
            return Target.parse(target).chip.arch
        except ValueError:
            continue
    return ""
