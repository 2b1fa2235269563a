"""The command `taxes`: how much of what a fused kernel saves is launches, waiting, and bytes that
go through memory once more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tftune.cli.options import DEFAULT_DB, Db, Json, Op, TargetName, open_store
from tftune.kernels.core.registry import operation
from tftune.studies.taxes.arms import FACTORS, LAUNCH, MEMORY, WAIT

if TYPE_CHECKING:
    from tftune.db.target import Target
    from tftune.db.trial import Measurement
    from tftune.studies.taxes.arms import Arm
    from tftune.studies.taxes.rows import Case
    from tftune.studies.taxes.split import Estimate, Modelled, Split

OnNode = Annotated[
    Literal["node", "model"], typer.Option("--on", help="Real GPUs, or the analytic model.")
]
TaxShapes = Annotated[
    list[str],
    typer.Argument(
        metavar="SHAPE...", help="Shapes, as in m=64,n=3584,k=8192,world=8, or named sets."
    ),
]
HEAD = ["tax", "us", "95 %", "of what is saved", "Shapley us", "modelled us"]
EXPLAINED = 0.1
"""The largest residual, of either sign, with which the taxes explain what is saved."""
HBM = "HBM bytes: not measured; this command runs no profiler"


def taxes(
    op: Op,
    shapes: TaxShapes,
    on: OnNode = "node",
    target: TargetName = None,
    variant: Annotated[
        str | None,
        typer.Option("--variant", metavar="VARIANT", help="Of the fused config that is taken."),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="DURATION",
            help="Begin no further shape after this wall-clock time, such as 90s, 10m or 2h.",
        ),
    ] = None,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Isolate the three taxes of BSP at each shape: launches, waiting, bytes through memory. Arms
    share BSP's rounds; the same command resumes after a stop."""
    from tftune.cli.console import note, print_json
    from tftune.cli.shapes_file import read_shapes
    from tftune.pipeline.bench_factory import check_worlds, find_target, seconds
    from tftune.studies.taxes.job import case_of, measured, usual_rows

    began, known = monotonic(), operation(op)
    machine = find_target(on, target, None, db)
    asked = read_shapes(known, shapes, machine.gpus)
    check_worlds(asked, machine, None)
    until = None if budget is None else began + seconds(budget)
    if on == "model":
        cases = [case_of(shape, (), machine, variant) for shape in asked]
        documents: list[dict[str, Any]] = []
        for case in cases:
            if sentence := machine.chip.why_no_model(case.world):
                raise ValueError(f"--on model --target {machine}: {sentence}")
            model = case.modelled(machine.chip)
            documents.append(_document(case, machine, None, model))
            if model and not as_json:
                _show_model(case, machine, model)
        return print_json(documents) if as_json else None
    from tftune.studies.taxes.bench import measure
    from tftune.tuner.bench.sandbox import Broken, RankError

    done: list[dict[str, Any]] = []
    with open_store(db, write=True) as store:
        rows = usual_rows(op, machine, store)
        cases = [case_of(shape, rows, machine, variant) for shape in asked]
        for case in cases:
            if until is not None and monotonic() >= until:
                break
            note(f"{case.shape} on {machine}: {case.config} beside {case.form}")
            try:
                times = measured(case, machine, store, measure)
            except (Broken, RankError) as error:
                said = f"the arms of {case.shape} could not be measured: {error}"
                raise ValueError(said) from error
            done.append(_tell(case, machine, times, as_json))
    if as_json:
        print_json(done)
    if len(done) < len(cases):
        raise ValueError(
            f"{len(done)} of {len(cases)} shapes were measured: the budget was too small; the same "
            "command goes on"
        )


def _tell(
    case: Case, machine: Target, times: Mapping[str, Mapping[Arm, Measurement]], as_json: bool
) -> dict[str, Any]:
    from tftune.studies.taxes.rows import MODE
    from tftune.studies.taxes.split import split, times_of

    measured = split(times_of(times[MODE]), case.gap)
    eager, model = _eager(times), case.modelled(machine.chip)
    if not as_json:
        _show(case, machine, measured, eager, model)
    return _document(case, machine, measured, model, eager)


def _eager(times: Mapping[str, Mapping[Arm, Measurement]]) -> dict[str, Estimate]:
    """What the host's launches add to a call, of medians: the two modes share no rounds."""
    from tftune.studies.taxes.arms import BSP, FUSED
    from tftune.studies.taxes.rows import MODE
    from tftune.studies.taxes.split import Estimate

    estimates = {}
    for name, arm in (("bsp", BSP), ("fused", FUSED)):
        eager, graph = times["eager"][arm], times[MODE][arm]
        low, high = eager.interval_us[0] - graph.interval_us[1], eager.interval_us[1]
        estimates[name] = Estimate(
            eager.median_us - graph.median_us, low, high - graph.interval_us[0]
        )
    return estimates


def _document(
    case: Case,
    machine: Target,
    found: Split | None,
    model: Modelled | None,
    eager: Mapping[str, Estimate] | None = None,
) -> dict[str, Any]:
    launched = {name: asdict(us) for name, us in (eager or {}).items()}
    return {
        "op": case.shape.op,
        "shape": str(case.shape),
        "target": machine.name,
        "config": case.config.to_dict(),
        "bsp": case.form.to_dict(),
        "measured": found and found.to_dict() | {"eager_less_graph_us": launched},
        "modelled": model and model.to_dict(),
    }


def _show_model(case: Case, machine: Target, model: Modelled) -> None:
    from tftune.cli.console import print_table

    saved = model.bsp_us - model.fused_us
    parts = dict(model.taxes) | {"work": model.work_us}
    rows = [[name, f"{us:.2f}", _share(us, saved)] for name, us in parts.items()]
    print(
        f"{case.shape} on {machine}, MODELLED: BSP {model.bsp_us:.1f} us, {case.config.variant} "
        f"{model.fused_us:.1f} us"
    )
    print_table("Taxes, modelled", ["tax", "us", "of what is saved"], rows)
    print(
        "Every time is predicted by the analytic model; none was measured. work: what BSP takes "
        "longer for the products themselves."
    )


def _share(us: float, saved_us: float) -> str:
    return f"{us / saved_us:.0%}" if saved_us > 0 else "-"


def _show(
    case: Case,
    machine: Target,
    found: Split,
    eager: Mapping[str, Estimate],
    model: Modelled | None,
) -> None:
    from tftune.cli.console import print_table

    print(
        f"{case.shape} on {machine}, measured in a graph: BSP {found.bsp_us.value:.1f} us, "
        f"{case.config.variant} {found.fused_us.value:.1f} us"
    )
    print_table("Taxes, measured", HEAD, list(_cells(found, model)))
    print("\n".join(_sentences(found, eager)))
    print(result(case, machine, found))


def _cells(found: Split, model: Modelled | None) -> Iterator[list[str]]:
    for name in FACTORS:
        tax = found.taxes[name]
        shapley = found.shapley.get(name)
        yield [
            name,
            f"{tax.value:.2f}",
            _interval(tax),
            _share(tax.value, found.saved_us.value),
            f"{shapley.value:.2f}" if shapley else "-",
            f"{model.taxes[name]:.2f}" if model else "-",
        ]


def _interval(estimate: Estimate) -> str:
    return f"{estimate.low:.2f} to {estimate.high:.2f}"


def _sentences(found: Split, eager: Mapping[str, Estimate]) -> Iterator[str]:
    gap = found.gap
    yield (
        f"BSP takes {_more_or_less(found.saved_us)}; it launches {gap.kernels} kernels more, and "
        f"moves the operation's bytes {gap.trips:g} times more through memory"
    )
    if not gap.peers:
        yield "one rank has nobody to exchange with: no wait, and no late rank, was measured"
    yield f"a kernel: {_us(found.per_kernel_us)}; a round trip: {_us(found.per_trip_us)}"
    for name, us in eager.items():
        yield f"launched by the host, {name} takes {_us(us)} longer than in a graph"
    for name, each in found.late.items():
        yield f"a rank late by 1 us costs {name} {each.value:.2f} us ({_interval(each)})"
    if found.clocked_us:
        yield f"a fused program waits {_us(found.clocked_us)} by the device's clock"
    for step, us in found.without_us.items():
        yield f"BSP without {step} is {_us(us)} shorter"
    if found.interaction:
        yield f"interaction of the factors: {_us(found.interaction)}"
    yield from _verdict(found.residual)
    yield HBM


def _verdict(residual: Estimate | None) -> Iterator[str]:
    """What stays unexplained, and whether the paper's claim holds here."""
    if residual is None:
        yield "residual: none, since BSP is not surely slower"
        return
    yield (
        f"residual: {residual.value:.0%} of what is saved ({residual.low:.0%} to "
        f"{residual.high:.0%})"
    )
    holds = "holds" if abs(residual.value) <= EXPLAINED else "does not hold"
    yield (
        f"the paper's claim that the three taxes explain what is saved {holds} here: at most "
        f"{EXPLAINED:.0%} may stay unexplained"
    )


def _more_or_less(us: Estimate) -> str:
    if us.value >= 0:
        return f"{_us(us)} longer"
    return f"{-us.value:.2f} us ({-us.high:.2f} to {-us.low:.2f}) less"


def _us(estimate: Estimate) -> str:
    return f"{estimate.value:.2f} us ({_interval(estimate)})"


def result(case: Case, machine: Target, found: Split) -> str:
    """One line for scripts: `name=value`, separated by blanks."""
    taxes = found.taxes
    residual = f"{found.residual.value:.3f}" if found.residual else "none"
    return (
        f"RESULT taxes op={case.shape.op} target={machine} {str(case.shape).replace(',', ' ')} "
        f"bsp_us={found.bsp_us.value:.2f} fused_us={found.fused_us.value:.2f} "
        f"launch_us={taxes[LAUNCH].value:.2f} wait_us={taxes[WAIT].value:.2f} "
        f"memory_us={taxes[MEMORY].value:.2f} residual={residual}"
    )
