"""The commands that look at a chip rather than at a search: audit and calibrate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tftune.cli.options import DEFAULT_DB, out_option
from tftune.kernels.core.registry import operation

if TYPE_CHECKING:
    from tftune.db.target import Target

Op = Annotated[str, typer.Argument(metavar="OP", help="Operation whose kernels are compiled.")]


def audit(
    op: Op,
    target: Annotated[
        str, typer.Option("--target", metavar="TARGET", help="AMD machine, such as mi300x8.")
    ] = "mi300x8",
    arch: Annotated[
        str | None,
        typer.Option("--arch", metavar="ARCH", help="Another architecture, such as gfx950."),
    ] = None,
    pool: Annotated[
        int,
        typer.Option(
            "--pool",
            min=1,
            help="Random configs of each variant and shape, besides tiles and defaults.",
        ),
    ] = 20,
    out: Annotated[
        Path | None, out_option("Where rows are; default: audits/TARGET/OP-ARCH.jsonl.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Compilers at once; default: one for each core."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="PATH",
            help="Rows of another Triton: say in how many kernels each number differs.",
        ),
    ] = None,
) -> None:
    """Compile the kernels of the space for an AMD target, without a GPU, and store registers, LDS,
    spills and more of each."""
    from tftune.cli.audit_job import compare, run_audit, shipped, summary
    from tftune.db.audit import read_audits
    from tftune.db.target import Target

    if against and not against.exists():
        raise ValueError(
            f"there is no file {against}: `tftune audit {op} --out {against}` with another Triton "
            "makes it"
        )
    others = read_audits(against) if against else ()
    known, machine = operation(op), Target.parse(target)
    arch = arch or machine.chip.arch
    path = out or Path("audits") / machine.name / f"{op}-{arch}.jsonl"
    audits = run_audit(known, machine, arch, pool, path, workers, shipped(known, machine))
    beside = compare(audits, others) if against else ()
    print("\n".join([*summary(audits, machine.chip.shared_bytes), *beside]))


def calibrate(
    out: Annotated[Path | None, out_option("File to write; default: TARGET.chip.json.")] = None,
    gpus: Annotated[
        int | None, typer.Option("--gpus", min=1, help="Use this many GPUs; default: all.")
    ] = None,
    emulated: Annotated[
        str | None,
        typer.Option(
            "--emulated",
            metavar="TARGET",
            help="Rehearse on emulated ranks as if on this machine; its file is of no use.",
        ),
    ] = None,
) -> None:
    """Measure this machine's constants for the model, in under two minutes, and write them to a
    file for `search --chip`."""
    from datetime import UTC, datetime

    from tftune.cli.calibration_job import Calibration
    from tftune.db.calibration_file import default_path, write_chip
    from tftune.db.target import build, need
    from tftune.pipeline.bench_factory import named

    if emulated:
        need("tftune calibrate --emulated", "torch", "triton")
    target = named(emulated, DEFAULT_DB) if emulated else _here(gpus)
    path, calibration = out or default_path(target), Calibration(target)
    for line in calibration.lines(emulated is not None):
        print(line)
    if emulated:
        calibration = Calibration(target, kept={"all": "emulated ranks: these times mean nothing"})
    now = datetime.now(UTC).isoformat(timespec="seconds")
    write_chip(
        path, target, calibration.measured, calibration.kept, build(), now, calibration.assumed
    )
    print(calibration.summary(path, emulated is not None))


def _here(gpus: int | None) -> Target:
    """This machine, or so many GPUs of it. Raises ValueError where there are fewer."""
    from tftune.db.target import Target, detect
    from tftune.pipeline.bench_factory import check_worlds

    machine = detect()
    check_worlds((), machine, gpus)
    return Target.of(machine.chip, gpus or machine.gpus)
