"""The commands of the base install, by the standard library alone: `select` and `doctor`.

Where typer is installed, app.py has them with all the others, and they end in the same functions.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path
from typing import Any, NoReturn

from tftune.cli.console import print_json
from tftune.db.trial import MODES
from tftune.kernels.core.registry import OPS, operation
from tftune.models.selector import Selector


def asked(artifact: Path | None, target: str | None, allow_modelled: bool) -> Selector:
    """The selector that answers as on the artifact's own machine; what it would not serve on this
    one is said on stderr."""
    import tftune
    from tftune.db.target import detect
    from tftune.loading import nothing_shipped
    from tftune.models.compatibility import why_elsewhere

    selector = tftune.load(artifact, target, allow_modelled)
    if not selector.artifacts:
        raise ValueError(nothing_shipped(target or detect().name))
    for loaded in selector.chain.artifacts:
        if why := why_elsewhere(loaded.document, selector.machine):
            print(f"on this machine it answers BSP: {why}", file=sys.stderr, flush=True)
    return Selector(*selector.chain.artifacts, allow_modelled=allow_modelled)


def select(
    op: str,
    shape: str,
    mode: str = "graph",
    target: str | None = None,
    artifact: Path | None = None,
    allow_modelled: bool = False,
    as_json: bool = False,
) -> None:
    """Print the config to run for one shape, and what it rests on. Raises ValueError, with the next
    command, for an unknown word and where nothing can be loaded."""
    from tftune.report.explain import selection_text
    from tftune.report.tables import assumptions

    given = operation(op).shape.parse(shape)
    selector = asked(artifact, target, allow_modelled)
    selection = selector.select(given, mode)
    found = selector.artifact(given, mode)
    machine = found.target.name if found else None
    if as_json:
        return print_json(
            {"shape": str(given), "mode": mode, "target": machine, **selection.to_dict()}
        )
    print("\n".join(selection_text(selection, given, mode, f" on {machine}" if machine else "")))
    for sentence in assumptions(found.bench, machine or "") if found else ():
        print(f"  {sentence}")


def doctor(artifacts: list[Path], as_json: bool = False) -> int:
    """Print what works on this machine; the exit code: 1 where an artifact is broken."""
    from tftune.doctor import examine, is_broken, sentences
    from tftune.loading import files

    report = examine([file for path in artifacts for file in files(path)], os.environ)
    print_json(report) if as_json else print("\n".join(sentences(report)))
    return int(is_broken(report))


def main(arguments: list[str] | None = None) -> None:
    """Run a command of the base install and exit: 0, 1 for a broken artifact, 2 with one sentence
    for wrong input and for commands that need more."""
    words = sys.argv[1:] if arguments is None else arguments
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    given = vars(_parser().parse_args(words or ["--help"]))
    command = given.pop("command")
    try:
        if command == "doctor":
            sys.exit(doctor(**given))
        select(**given)
        sys.exit(0)
    except (ValueError, OSError, ImportError) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)


class _Parser(argparse.ArgumentParser):
    """Says of the other commands what they need."""

    def error(self, message: str) -> NoReturn:
        if "invalid choice" in message and "command" in message:
            message = (
                "the base install has the commands select and doctor; the others come with typer, "
                "optuna and others: in a clone, pip install '.[tune]'"
            )
        print(f"error: {message}; see `{self.prog} --help`", file=sys.stderr)
        sys.exit(2)


def _parser() -> argparse.ArgumentParser:
    from tftune import __version__

    parser = _Parser("tftune", description="Select fused kernels; what works on this machine.")
    parser.add_argument("--version", action="version", version=f"tftune {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    one = commands.add_parser("select", help="The config to run for one shape.")
    one.add_argument("op", metavar="OP", help=f"Operation: {', '.join(OPS)}.")
    one.add_argument("shape", metavar="SHAPE", help="As in m=64,n=3584,k=8192,world=8.")
    one.add_argument("--mode", choices=MODES, default="graph", help="How the server launches.")
    one.add_argument("--target", help="Machine, <chip>x<GPUs>, such as h200x8 or mi300x8.")
    one.add_argument(
        "--artifact", type=Path, metavar="PATH", help="An exported artifact, or a folder of them."
    )
    one.add_argument("--allow-modelled", action="store_true", help="Also from predicted times.")
    other = commands.add_parser("doctor", help="What works on this machine.")
    also = "Also look at this artifact; repeat for several."
    several: dict[str, Any] = {"dest": "artifacts", "action": "append", "default": []}
    other.add_argument("--artifact", type=Path, metavar="PATH", help=also, **several)
    for command in (one, other):
        command.add_argument("--json", action="store_true", dest="as_json", help="Print JSON.")
    return parser
