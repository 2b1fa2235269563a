"""The commands that look at a chip rather than at a search: audit and calibrate. `cli.py` gives them their place in the program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tftune.kernels.registry import operation

Op = Annotated[str, typer.Argument(metavar="OP", help="Operation whose kernels are compiled.")]


def audit(
    op: Op,
    target: Annotated[str, typer.Option("--target", metavar="TARGET", help="AMD machine, such as mi300x8.")] = "mi300x8",
    arch: Annotated[str | None, typer.Option("--arch", metavar="ARCH", help="Another architecture, such as gfx950.")] = None,
    pool: Annotated[int, typer.Option("--pool", min=1, help="Random configs of each variant and shape, besides tiles and defaults.")] = 40,
    out: Annotated[Path | None, typer.Option("--out", metavar="PATH", help="Where rows are; default: audits/TARGET/OP-ARCH.jsonl.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Compilers at once; default: one for each core.")] = None,
) -> None:
    """Compile the kernels of the space for an AMD target, without a GPU, and store registers, LDS, spills and more of each."""
    from tftune.auditing import run_audit, shipped, summary
    from tftune.db.target import Target

    known, machine = operation(op), Target.parse(target)
    arch = arch or machine.chip.arch
    path = out or Path("audits") / machine.name / f"{op}-{arch}.jsonl"
    for line in summary(run_audit(known, machine, arch, pool, path, workers, shipped(known, machine)), machine.chip.shared_bytes):
        print(line)
