"""The commands that say what there is: named sets of shapes, and versions."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tftune.cli.console import print_json
from tftune.cli.options import Json
from tftune.cli.shapes_file import options_of, read_shapes
from tftune.kernels.core.registry import Operation, operation, packages

AnyOp = Annotated[
    str | None, typer.Argument(metavar="[OP]", help="Only this operation; default: all.")
]


def sets(
    op: AnyOp = None,
    shapes: Annotated[
        list[str] | None,
        typer.Option(
            "--shapes",
            metavar="SHAPES",
            help="List the shapes that this means, as `tftune search` reads it; needs OP.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the named sets of shapes with their options, or every shape that --shapes stands for."""

    if shapes:
        if op is None:
            raise ValueError(f"--shapes {shapes[0]!r} needs an operation: tftune sets OP --shapes")
        texts = [str(shape) for shape in read_shapes(operation(op), shapes)]
        return print_json({"op": op, "shapes": texts}) if as_json else print("\n".join(texts))
    known = [operation(name) for name in ([op] if op else packages())]
    listed = [_described(each, name) for each in known for name in each.shape_sets]
    if as_json:
        return print_json(listed)
    for row in listed:
        options = ",".join(f"{name}={value}" for name, value in row["options"].items())
        print(f"{row['op']} {row['name']}: {row['shapes']:,} shapes of world {row['world']}")
        print(f"  options: {options}")
    print("tftune search OP --shapes NAME:option=value,size=value takes them; see `tftune search`")


def _described(known: Operation, name: str) -> dict[str, Any]:
    """A set: what it is called, how many shapes it has by default, and what it takes."""
    from tftune.pipeline.bench_factory import world_of

    made = known.shape_sets[name]()
    sizes = {"shapes": len(made), "world": world_of(*made)}
    return {"op": known.name, "name": name, **sizes, "options": options_of(known, name)}


def version(as_json: Json = False) -> None:
    """Print the versions of tftune and of what a measured time depends on: Python, torch, Triton,
    Iris, driver."""
    from tftune import __version__
    from tftune.db.target import build

    versions = {"tftune": __version__} | build()
    if as_json:
        return print_json(versions)
    print("\n".join(f"{name} {text}" for name, text in versions.items()))
