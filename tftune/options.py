"""The options that several commands take, each stated once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

try:
    import typer
except ModuleNotFoundError as missing:
    print(f"error: the command line needs {missing.name}, which comes with (in a clone): pip install '.[tune]'", file=sys.stderr)
    sys.exit(2)

from tftune.kernels.registry import OPS

Op = Annotated[str, typer.Argument(metavar="OP", help=f"Operation: {', '.join(OPS)}.")]
ShapeText = Annotated[str, typer.Argument(metavar="SHAPE", help="One shape, as in m=64,n=3584,k=8192,world=8.")]
Db = Annotated[Path, typer.Option("--db", metavar="PATH", envvar="TFTUNE_DB", help="Database of runs and trials.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else there.")]
TargetName = Annotated[str | None, typer.Option("--target", metavar="TARGET", help="Machine, <chip>x<GPUs>, such as h200x8 or mi300x8.")]
BenchName = Annotated[
    Literal["node", "model", "replay"] | None, typer.Option("--bench", help="Rows of this bench; default: node, else what there is.")
]
OneMode = Annotated[Literal["graph", "eager"], typer.Option("--mode", help="How the server launches: captured in a graph, or eagerly.")]
ArtifactPath = Annotated[
    Path | None, typer.Option("--artifact", metavar="PATH", help="An exported artifact; default: the one shipped for the target.")
]
AllowModelled = Annotated[bool, typer.Option("--allow-modelled", help="Also answer from leaves that were modelled, not measured.")]
DEFAULT_DB = Path("tftune.db")
