"""The command `study nodes`: an operation on several nodes, which no machine here has. Every line
that it prints says that it is simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tftune.cli.options import Json, OneMode, Op

if TYPE_CHECKING:
    from tftune.studies.nodes.compare import Row

LISTED = "; several, as in 2+10+50"


def nodes(
    op: Op,
    counts: Annotated[str, typer.Option("--nodes", metavar="N", help=f"Nodes{LISTED}.")] = "8",
    gpus: Annotated[int, typer.Option("--gpus", min=1, help="GPUs of each node.")] = 8,
    shapes: Annotated[
        str,
        typer.Option("--shapes", metavar="SHAPES", help="A named set; its world is nodes x gpus."),
    ] = "paper:m=16+256+2048+8192",
    nic: Annotated[
        str, typer.Option("--nic", metavar="NIC", help="NICs: hdr, ndr or slingshot; several by +.")
    ] = "ndr",
    nics: Annotated[
        int, typer.Option("--nics", min=0, help="NICs of each node; 0: one for each GPU.")
    ] = 0,
    skew: Annotated[
        str,
        typer.Option(
            "--skew", metavar="US", help=f"Standard deviation of ranks' start times{LISTED}."
        ),
    ] = "0+10+50",
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Draws of start times.")] = 200,
    chip: Annotated[
        str, typer.Option("--gpu", metavar="CHIP", help="GPU, such as h200 or mi300x.")
    ] = "h200",
    mode: OneMode = "graph",
    as_json: Json = False,
) -> None:
    """Simulate an operation on 16 to 64 GPUs: speed-ups of pushes over BSP by size, skew, network
    and flag granularity. Nothing of it is measured, and no kernel runs on several nodes yet."""
    from tftune.cli.console import print_json, print_table
    from tftune.cli.shapes_file import read_shapes
    from tftune.kernels.core.chips import chip_named, names
    from tftune.kernels.core.registry import operation
    from tftune.studies.nodes.compare import study
    from tftune.studies.nodes.topology import Topology, nic_named

    if op != "all_gather_gemm":
        raise ValueError(f"{op} has no simulation on several nodes; all_gather_gemm has one")
    if (known := chip_named(chip)) is None:
        raise ValueError(f"{chip!r} is no known chip; there are {', '.join(names())}")
    groups: list[list[Row]] = []
    for count in _numbers("--nodes", counts):
        for name in nic.split("+"):
            fabric = Topology(int(count), gpus, nic_named(name), nics)
            for shape in read_shapes(operation(op), [shapes], fabric.world):
                for skew_us in _numbers("--skew", skew):
                    groups.append(study(shape, mode, known, fabric, skew_us, seeds))
    rows = [row for group in groups for row in group]
    if as_json:
        print_json([row.to_dict() for row in rows])
    else:
        print_table(f"simulated: {op}, mode {mode}", HEAD, [_cells(row) for row in rows])
        print("\n".join(map(_verdict, groups)))


def _numbers(option: str, text: str) -> list[float]:
    """Numbers of at least 0, separated by +; raises ValueError for another word."""
    numbers = []
    for word in text.split("+"):
        try:
            number = float(word)
        except ValueError:
            number = -1.0
        if not 0 <= number < 1e6:
            raise ValueError(f"{option} {text}: {word!r} must be a number from 0 to a million")
        numbers.append(number)
    return numbers


HEAD = (
    "simulated", "M", "GPUs", "NIC", "skew", "variant", "flag", "us", "5 to 95 %", "BSP/us"
)  # fmt: skip


def _cells(row: Row) -> list[str]:
    """A row of the table; each says that it is simulated."""
    return [
        "simulated", str(row.m), f"{row.nodes} x {row.gpus}", row.nic, f"{row.skew_us:g}",
        row.variant, f"{row.rows_per_flag} x {row.k_per_flag}" if row.rows_per_flag else "-",
        f"{row.us:.1f}", f"{row.low_us:.1f} to {row.high_us:.1f}", f"{row.speedup:.2f}",
    ]  # fmt: skip


def _verdict(rows: list[Row]) -> str:
    """Which flags pay, of one shape, topology and skew."""
    from tftune.studies.nodes.compare import fine_and_best

    fine, best = fine_and_best(rows)
    sizes = f"M={best.m}, N={best.n}, K={best.k}"
    where = f"{sizes}, {best.nodes} x {best.gpus}, {best.nic}, skew {best.skew_us:g} us"
    flag = f"{best.rows_per_flag} x {best.k_per_flag}"
    if best.speedup < 1:
        return f"simulated: {where}: no push pays; the best, {best.variant}, {best.speedup:.2f}"
    if fine.us <= 1.01 * best.us:
        return f"simulated: {where}: the finest flags cost nothing, {best.speedup:.2f} times BSP"
    loss = fine.us / best.us - 1
    return f"simulated: {where}: the finest flags lose {loss:.0%} to {flag} of {best.variant}"
