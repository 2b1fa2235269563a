"""The options that several commands take, each stated once, and the database that they open."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import wraps
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

try:
    import typer
except ModuleNotFoundError as missing:
    print(
        f"error: the command line needs {missing.name}, which comes with (in a clone): "
        "pip install '.[tune]'",
        file=sys.stderr,
    )
    sys.exit(2)

from tftune.cli import completion
from tftune.db.trial import MODES
from tftune.kernels.core.registry import OPS

if TYPE_CHECKING:
    from tftune.db.store import Store

Op = Annotated[
    str,
    typer.Argument(
        metavar="OP",
        help=f"Operation: {', '.join(OPS)}.",
        autocompletion=completion.operations,
    ),
]
ShapeText = Annotated[
    str,
    typer.Argument(
        metavar="SHAPE",
        help="One shape, as in m=64,n=3584,k=8192,world=8.",
        autocompletion=completion.shape,
    ),
]
Db = Annotated[
    Path,
    typer.Option("--db", metavar="PATH", envvar="TFTUNE_DB", help="Database of runs and trials."),
]
OtherDb = Annotated[
    Path | None,
    typer.Option(
        "--db",
        metavar="PATH",
        envvar="TFTUNE_DB",
        help="Database of runs and trials; default: tftune.db where it is there.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else there.")]
TargetName = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="TARGET",
        help="Machine, <chip>x<GPUs>, such as h200x8 or mi300x8.",
        autocompletion=completion.targets,
    ),
]
Lengths = Annotated[
    str,
    typer.Option(
        "--lengths",
        metavar="NAMES",
        help="Lengths of sequences: full, or distributions with seeds, as in uniform/1,chat/2.",
    ),
]
BenchName = Annotated[
    Literal["node", "model", "replay"] | None,
    typer.Option("--bench", help="Rows of this bench; default: node, else what there is."),
]
OneMode = Annotated[
    Literal["graph", "eager"],
    typer.Option("--mode", help="How the server launches: captured in a graph, or eagerly."),
]
ArtifactPath = Annotated[
    Path | None,
    typer.Option(
        "--artifact",
        metavar="PATH",
        help="An exported artifact; default: those shipped for the target.",
    ),
]
AllowModelled = Annotated[
    bool,
    typer.Option(
        "--allow-modelled", help="Also answer from leaves that were modelled, not measured."
    ),
]
DEFAULT_DB = Path("tftune.db")
Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shapes",
        metavar="SHAPES",
        help="Shape, YAML or JSON file, or named set (paper, llama3-70b:shard=m,m=16+128; "
        "`tftune sets` lists them; default: engine, else the first); repeat, or separate by ';'.",
        autocompletion=completion.shapes,
    ),
]
On = Annotated[
    Literal["node", "model", "replay"],
    typer.Option("--on", help="Real GPUs, the analytic model, or stored rows."),
]
Modes = Annotated[
    Literal["graph", "eager", "both"],
    typer.Option("--mode", help="Captured in a graph, eager, or both."),
]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="DURATION",
        help="Stop after this wall-clock time, such as 90s, 10m or 2h; BSP and the default configs "
        "of every shape are measured whatever it says.",
    ),
]
ChipFile = Annotated[
    Path | None,
    typer.Option(
        "--chip", metavar="PATH", help="The machine's constants, from `tftune calibrate`."
    ),
]


def modes_of(word: str) -> tuple[str, ...]:
    """The modes that a word of `--mode` names."""
    return MODES if word == "both" else (word,)


def file_to_write(path: Path | None) -> Path | None:
    """A file or folder to write; raises BadParameter for `-`, which elsewhere means stdout."""
    if path == Path("-"):
        raise typer.BadParameter("'-' is no file here, and stdout takes none; give a name")
    return path


def out_option(meaning: str, metavar: str = "PATH") -> Any:
    """The option --out, of what a command writes."""
    return typer.Option("--out", callback=file_to_write, metavar=metavar, help=meaning)


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer reads it: in place of the parameter that takes a dataclass, an option
    for each field of it."""
    kinds = get_type_hints(command, include_extras=True).values()
    options: Any = next((kind for kind in kinds if is_dataclass(kind)), None)
    if options is None:
        return command

    @wraps(command)
    def run(**given: Any) -> None:
        command(options(**given))

    words = get_type_hints(options, include_extras=True)
    fields = signature(options).parameters.values()
    listed = [field.replace(annotation=words[field.name]) for field in fields]
    run.__signature__ = Signature(listed)  # type: ignore[attr-defined]
    return run


@contextmanager
def open_store(path: Path, *, write: bool = False, new: bool = True) -> Iterator[Store]:
    """The database of a command, closed at its end. `new`: writing may make it."""
    from tftune.db.store import Store

    if not new:
        Store.open(path, write=False).close()
    with Store.open(path, write=write) as store:
        yield store
