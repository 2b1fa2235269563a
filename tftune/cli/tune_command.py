"""The command `tftune tune`: a model, or one operation, from nothing to artifacts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tftune.cli.console import Progress, note, print_json, print_table
from tftune.cli.options import (
    DEFAULT_DB,
    ChipFile,
    Db,
    Json,
    TargetName,
    modes_of,
    open_store,
    out_option,
)
from tftune.kernels.core.registry import operation

if TYPE_CHECKING:
    from tftune.pipeline.tune_model import Job, Tuned

OF_MODEL, OF_OP = "5m", "60m"
"""The budget where none is given."""


@dataclass(frozen=True)
class TuneOptions:
    """What `tftune tune` is asked for."""

    op: Annotated[
        str | None,
        typer.Argument(metavar="[OP]", help="Operation to search; default: all_gather_gemm."),
    ] = None
    model: Annotated[
        Path | None,
        typer.Option(
            "--model", metavar="FILE", help="Tune all layers of this Hugging Face config.json."
        ),
    ] = None
    tp: Annotated[
        int | None,
        typer.Option("--tp", min=2, help="With --model: ranks that share it; default: all GPUs."),
    ] = None
    plan: Annotated[
        Literal["both", "all-reduce", "sequence-parallel"],
        typer.Option("--plan", help="With --model: how its layers exchange."),
    ] = "both"
    batches: Annotated[
        str,
        typer.Option("--batches", metavar="SIZES", help="With --model: tokens of decode steps."),
    ] = "1,2,4,8,16,32,64,128,256"
    prefill: Annotated[
        str,
        typer.Option("--prefill", metavar="SIZES", help="With --model: tokens of prefill steps."),
    ] = "1024,2048,4096"
    mode: Annotated[
        Literal["graph", "eager", "both"],
        typer.Option("--mode", help="With --model: captured in a graph, eager, or both."),
    ] = "graph"
    on: Annotated[
        Literal["node", "model"],
        typer.Option("--on", help="With --model: real GPUs, or the analytic model."),
    ] = "node"
    target: TargetName = None
    out: Annotated[Path, out_option("With --model: folder of artifacts.", "DIR")] = Path(
        "tftune-artifacts"
    )
    shapes: Annotated[
        str | None, typer.Option("--shapes", metavar="SHAPES", help="As in `tftune search`.")
    ] = None
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="DURATION",
            help="For measuring, such as 30m or 2h; default: 5m for a model, 60m for an operation.",
        ),
    ] = None
    db: Db = DEFAULT_DB
    chip: ChipFile = None
    show: Annotated[
        str | None,
        typer.Option(
            "--show", metavar="TARGET", help="Print the commands for this machine and run nothing."
        ),
    ] = None
    as_json: Json = False


def tune(asked: TuneOptions) -> None:
    """Tune all layers of a model, or one operation, within a budget; it ends with artifacts of what
    was measured, and the same command goes on."""
    if asked.model is None:
        return _tune_op(asked)
    words = (("OP", asked.op), ("--shapes", asked.shapes), ("--show", asked.show))
    if given := [name for name, value in words if value]:
        raise ValueError(
            f"--model names the shapes, and {', '.join(given)} was given; leave it out"
        )
    _tune_model(_job(asked, asked.model), asked.model, asked.db, asked.as_json)


def _job(asked: TuneOptions, path: Path) -> Job:
    """What is to be tuned; raises ValueError where words, model and machine do not fit."""
    from tftune.db.target import Target
    from tftune.pipeline.bench_factory import check_worlds, find_target, seconds
    from tftune.pipeline.model_config import read_config
    from tftune.pipeline.model_shapes import model_shapes
    from tftune.pipeline.tune_model import Job

    on = asked.on
    config, machine = read_config(path), find_target(on, asked.target, asked.chip, asked.db)
    world = asked.tp or machine.gpus
    batches, prefill = _sizes(asked.batches, "batches"), _sizes(asked.prefill, "prefill")
    model = model_shapes(config, world, asked.plan, batches, prefill)
    check_worlds(model.shapes, machine, None)
    machine = Target.of(machine.chip, world)
    if on == "model" and (off := machine.chip.why_no_model(world)):
        raise ValueError(f"--on model --target {machine}: {off}")
    budget_s = seconds(asked.budget or OF_MODEL)
    return Job(model, modes_of(asked.mode), on, machine, budget_s, asked.out)


def _sizes(text: str, name: str) -> tuple[int, ...]:
    """Numbers of tokens as `--batches` has them."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if wrong := [word for word in words if not word.isdecimal() or int(word) < 1]:
        raise ValueError(f"--{name} {text!r} has {wrong[0]!r}; give numbers such as 1,8,64")
    return tuple(int(word) for word in words)


def _tune_model(job: Job, path: Path, db: Path, as_json: bool) -> None:
    from tftune.pipeline.tune_model import tune as run
    from tftune.report.tables import BENCH_WORDS

    for sentence in job.model.left_out:
        note(f"left out: {sentence}")
    title = f"{path} on {job.target.name}, {BENCH_WORDS[job.on]}"
    shapes, modes = len(job.model.shapes), " and ".join(job.modes)
    note(f"{title}: {shapes} shapes, mode {modes}, stored in {db}")
    if job.on == "model":
        note(f"modelled: {job.target.chip.assumptions}")
    progress = Progress(job.budget_s)
    progress.start(None)
    with open_store(db, write=True) as store:
        try:
            tuned = run(job, store, progress.advance, progress.doing)
        finally:
            progress.finish()
    if as_json:
        print_json(_json(job, path, tuned))
    else:
        _show(job, title, tuned)
    _end(tuned)


def _json(job: Job, path: Path, found: Tuned) -> dict[str, object]:
    from tftune.report.tables import BENCH_WORDS

    return {
        "model": str(path), "target": job.target.name, "bench": job.on,
        "times": BENCH_WORDS[job.on], "artifacts": [str(path) for path in found.artifacts],
        "layers": [answer.to_dict() for answer in found.answers],
        "steps": [step.to_dict() for step in found.steps], "unmeasured": found.unmeasured,
        "left_out": list(job.model.left_out),
    }  # fmt: skip


def _show(job: Job, title: str, found: Tuned) -> None:
    """The tables of a model: each layer, then whole steps; then what to do next."""
    from tftune.report import model_table, tables

    for mode in job.modes:
        layers = model_table.layer_rows(a for a in found.answers if a.mode == mode)
        print_table(f"{title}, mode {mode}", model_table.LAYERS, layers)
        if steps := model_table.step_rows(step for step in found.steps if step.mode == mode):
            print_table(f"\none step, mode {mode}", model_table.STEPS, steps)
    print(model_table.COLUMNS)
    for sentence in tables.assumptions(job.on, job.target.name):
        print(sentence)
    if found.unmeasured:
        note(f"{found.unmeasured} layers were not measured; the same command goes on")
    note(tables.shares(found.spent_s, sum(found.spent_s.values())))
    for path in found.artifacts:
        print(f"artifact: {path}")
    if found.artifacts:
        modelled = ", allow_modelled=True" if job.on == "model" else ""
        note(f'next: tftune.bind(group, path="{job.folder}"{modelled})')


def _end(found: Tuned) -> None:
    """Raise what ended the measuring; a node without ranks as an error with its sentence."""
    if isinstance(found.stopped, KeyboardInterrupt):
        raise found.stopped
    if found.stopped is not None:
        raise ValueError(
            f"no world of ranks could be had: {found.stopped}; see that no process holds a GPU; "
            "`tftune doctor` says what works here"
        )


def _tune_op(asked: TuneOptions) -> None:
    from tftune.cli.shapes_file import read_shapes
    from tftune.cli.tune import run, steps
    from tftune.db.target import detect
    from tftune.pipeline.bench_factory import check_worlds, named, seconds

    target = named(asked.show, asked.db) if asked.show else detect()
    known = operation(asked.op or "all_gather_gemm")
    wanted = asked.shapes or known.searched_set
    check_worlds(read_shapes(known, [wanted], target.gpus), target, None)
    commands = steps(known.name, target, wanted, seconds(asked.budget or OF_OP), asked.db)
    if asked.show:
        print("\n".join(map(str, commands)))
    else:
        run(commands)
