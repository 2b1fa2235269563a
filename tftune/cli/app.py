"""The command `tftune`: which commands there are, and how it ends.

Each command only gathers its arguments, asks the rooms, and prints. Whatever is heavy is imported
inside the command that needs it. Wrong input is one sentence on stderr and exit code 2;
TFTUNE_DEBUG=1 shows the traceback. The environment is read here only.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

from tftune.cli.options import open_store, spread  # before typer: it says what typer comes with

# isort: split
import typer

from tftune.cli import (
    about_commands,
    artifact_commands,
    cache_commands,
    chip_commands,
    fleet_commands,
    serve_commands,
    store_commands,
    training_commands,
    watch_commands,
)
from tftune.cli.console import note
from tftune.cli.facts_command import facts
from tftune.cli.search_command import search
from tftune.cli.tune_command import tune
from tftune.studies.nodes.command import nodes
from tftune.studies.taxes.command import taxes

__all__ = ["app", "main", "open_store", "search"]

USAGE, INTERRUPTED = 2, 130
RESUMED = {"search", "tune", "facts", "taxes", "audit", "push"}
STOPPED = "what finished is stored, and the same command resumes"
UNHARMED = "each file is whole, as it was or as it was to be"
"""What a stopped command leaves."""
UsageError: Any = typer.BadParameter.__bases__[
    0
]  # typer brings its own click, or takes the installed one, by its version
EXPECTED = (ValueError, OSError, ImportError, NotImplementedError, UsageError)
"""What the rooms raise for wrong input or a machine that lacks something: each carries its
sentence."""

EXTRAS = {"cuda": ("torch", "triton", "iris"), "client": ("cryptography",), "fleet": ("ray",)}
"""What brings a package that is not one of [tune]."""

HELP = {"help_option_names": ["-h", "--help"]}
PLAIN: Any = dict(pretty_exceptions_enable=False, rich_markup_mode=None, context_settings=HELP)
app = typer.Typer(**PLAIN)

Commands = dict[str, tuple[Callable[..., None], str]]
COMMANDS: Commands = {
    "search": (search, "Measure configs of each shape, store every trial."),
    "train": (training_commands.train, "Learn from the rows, and judge it held out."),
    "export": (training_commands.export, "Train, and write the artifact that answers."),
    "report": (training_commands.report, "Write pages with figures of what was found."),
    "select": (artifact_commands.select, "Name the config for one shape."),
    "explain": (artifact_commands.explain, "Say why it is that config."),
    "verify": (artifact_commands.verify, "Measure a few answers again on this node."),
    "diff": (artifact_commands.diff, "Compare two artifacts of one operation."),
    "doctor": (artifact_commands.doctor, "Say what works on this machine."),
    "audit": (chip_commands.audit, "Compile kernels for an AMD target, without a GPU."),
    "calibrate": (chip_commands.calibrate, "Measure this machine's constants."),
    "tune": (tune, "Tune a model, or all that a new node needs."),
    "facts": (facts, "Learn what lengths of sequences change."),
    "push": (fleet_commands.push, "Send rows to a fleet's service."),
    "pull": (fleet_commands.pull, "Fetch a checked artifact from the service."),
    "sign": (fleet_commands.sign, "Sign an artifact with the release key."),
    "findings": (watch_commands.list_findings, "List the times that moved on this node."),
    "serve": (serve_commands.serve, "Serve a fleet's rows and artifacts."),
    "sets": (about_commands.sets, "List the named sets of shapes."),
    "version": (about_commands.version, "Print versions of tftune and its libraries."),
}
"""By name: what runs, and its summary in `tftune --help`, a whole sentence that fits 80 columns."""
GROUPS: dict[str, tuple[str, str, Commands]] = {
    "trials": (
        "Move rows between databases and JSONL files, and look at them.",
        "Rows: import, export, list and count them.",
        {
            "import": (store_commands.import_trials, "Add the rows of a JSONL file."),
            "export": (store_commands.export_trials, "Write rows as JSONL."),
            "list": (store_commands.list_trials, "Show the newest rows."),
            "stats": (store_commands.stats, "Count rows by operation, target and bench."),
        },
    ),
    "db": (
        "Look after a database.",
        "Look after a database.",
        {"check": (store_commands.check, "Read every row, and say what is wrong.")},
    ),
    "cache": (
        "What `warm_up` and `compile_pass` confirmed on this machine.",
        "Answers confirmed on this machine.",
        {
            "list": (cache_commands.list_cache, "List what was confirmed on this machine."),
            "show": (cache_commands.show_cache, "Show the answers of one combination."),
            "clear": (cache_commands.clear_cache, "Forget them: the next job measures anew."),
        },
    ),
    "keys": (
        "Look after release keys.",
        "Look after release keys.",
        {"create": (fleet_commands.create_key, "Make a release key.")},
    ),
    "tokens": (
        "Who may ask the service for what.",
        "Tokens of the service.",
        {
            "create": (serve_commands.create_token, "Make a token and print it, once."),
            "list": (serve_commands.list_tokens, "Show every token without its secret."),
            "revoke": (serve_commands.revoke_token, "Revoke a token."),
        },
    ),
    "study": (
        "Answer questions of papers; no kernel is selected by it.",
        "Answer questions of papers.",
        {
            "taxes": (taxes, "Isolate what launches, waits and memory cost."),
            "nodes": (nodes, "Simulate 16 to 64 GPUs on several nodes."),
        },
    ),
}
"""By name: a group's help, its summary in `tftune --help`, and its commands."""


def _fill(group: typer.Typer, commands: Commands) -> typer.Typer:
    for name, (run, summary) in commands.items():
        group.command(name, short_help=summary)(spread(run))
    return group


_fill(app, COMMANDS)
for _name, (_help, _summary, _commands) in GROUPS.items():
    _group = _fill(typer.Typer(help=_help, short_help=_summary), _commands)
    app.add_typer(_group, name=_name)


def _print_version(asked: bool) -> None:
    if asked:
        from tftune import __version__

        print(f"tftune {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and end.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Tune, train and select kernels that fuse communication into computation on one multi-GPU
    node.

    Results go to stdout, notes and progress to stderr. Exit codes: 0 done, 1 something is wrong
    with what was checked, 2 an error, 130 stopped. `tftune --install-completion` completes words in
    your shell.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0, 2 with one sentence for wrong input, 130 after Ctrl-C."""
    arguments = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if arguments[0] == "help":
        arguments = [*arguments[1:], "--help"]
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    try:
        code = app(arguments, prog_name="tftune", standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except EXPECTED as error:
        if os.environ.get("TFTUNE_DEBUG"):
            raise
        _fail(f"error: {_sentence(error, arguments)}", USAGE)
    if code == INTERRUPTED:  # newer typer returns it, older typer raises
        _fail(f"stopped; {STOPPED if set(arguments[:2]) & RESUMED else UNHARMED}", INTERRUPTED)
    sys.exit(code)


def _fail(sentence: str, code: int) -> NoReturn:
    note(sentence)
    sys.exit(code)


def _sentence(error: Any, arguments: list[str]) -> str:
    """What an error says, on one line."""
    text = str(error)
    if isinstance(error, UsageError):
        command = error.ctx.command_path if error.ctx else "tftune"
        said = error.format_message().replace("Value error, ", "").rstrip(".")
        text = f"{said}{_given(error, arguments)}; see `{command} --help`"
    elif isinstance(error, ImportError) and not (error.name or "tftune").startswith("tftune"):
        name = str(error.name).partition(".")[0]
        extra = next((extra for extra, names in EXTRAS.items() if name in names), "tune")
        text = (
            f"this needs {name}, which is not installed or cannot be loaded ({error}); install it "
            f"(in a clone: pip install '.[{extra}]'); `tftune doctor` says what else is missing"
        )
    elif isinstance(error, OSError) and error.filename:
        text = f"{error.filename}: {error.strerror}"
    return " ".join(text.split())


def _given(error: Any, arguments: list[str]) -> str:
    """What was given for the option that an error is about, where the error does not show it."""
    options = getattr(getattr(error, "param", None), "opts", ())
    for word, following in zip(arguments, [*arguments[1:], ""], strict=True):
        name, _, value = word.partition("=")
        if name in options:
            given = value or following
            return "" if repr(given) in error.format_message() else f", and {given!r} was given"
    return ""
