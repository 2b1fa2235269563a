"""`tftune.warm_up`: a few configs beside BSP, on the ranks that will serve; the answers are
remembered."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import uuid4

import tftune
from tftune.confirm.bench import Here, InChildren, InPlace, Scene
from tftune.confirm.candidates import PROVEN, TOP, candidates
from tftune.confirm.guesses import changes
from tftune.confirm.memory import Memory, Place, View
from tftune.confirm.request import Request, agreed, bound
from tftune.db.evidence import BSP
from tftune.db.journal import EXCLUDING, Excluded, append, excluded, recover
from tftune.db.target import clocks
from tftune.db.trial import Failure, Measurement, Outcome, Run, now
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.registry import operation, payload_bytes
from tftune.kernels.core.revision import installed
from tftune.kernels.core.shape import Shape, check_kind
from tftune.kernels.core.space import Config
from tftune.models.bracket import Answers, families, step
from tftune.models.selection import Selection
from tftune.models.selector import Selector
from tftune.tuner.bench.compile_ahead import compile_ahead, new_jobs, processes
from tftune.tuner.bench.ranks import Ranks
from tftune.tuner.warm_up.contest import best_form, may_decide, runner_up, winner
from tftune.tuner.warm_up.order import Order

logger = logging.getLogger(__name__)
LASTING = ("measured", "interpolated")
"""Sources of answers that are remembered."""


def warm_up(
    shapes: Iterable[Shape],
    workspace: Workspace,
    top: int = TOP,
    *,
    mode: str = "graph",
    rows: str | os.PathLike[str] | None = None,
    budget_s: float = 0.5,
    deadline_s: float = 30.0,
    sandbox: bool | None = None,
    again: bool = False,
) -> dict[Shape, Selection]:
    """Time a few configs beside BSP at these shapes, and select what is fastest here.

    Collective: all ranks of the workspace's group call it with the same arguments, after
    `tftune.bind` and before any capture. From then on `tftune.ops` and `tftune.select_kernel` give
    these answers in this process. A fused config is selected only where the lower end of the 95 %
    interval of BSP's time over its own is at least 1.01.

    What was confirmed is remembered in the user's cache folder (docs/warm-up.md), and taken from
    there by the next start. Of shapes that differ in one size some are measured; the others are
    bounded by those, with the source "interpolated".

    `shapes`: any operation, of the workspace's world. `top`: fused configs tried at each shape,
    from an artifact, related machines, defaults and the model; then as many small changes of the
    fastest one, where it is faster than BSP or nearly so. `mode`: as the layer will run,
    "graph" or "eager". `rows`: a file of rows that rank 0 appends to, for `tftune trials import`,
    instead of the cache: then nothing is remembered but what hung, crashed or was wrong.
    `budget_s`: seconds for each of these two looks at a shape, after compiling; longer only where
    five rounds of BSP and one config take longer. `deadline_s`: seconds for the first launches of
    each config, after which the process prints the config and ends with code 75: start it again.
    `sandbox`: do all of it in child processes, where a hang costs a world of them; call it before
    weights are loaded, and guard the script's entry by `if __name__ == "__main__"`. None: on
    architectures that no committed row has run on. `again`: measure what is remembered, too.

    Returns the selection of each shape. Raises ValueError, on every rank alike, for arguments that
    do not fit or differ between ranks, without `tftune.bind`, and while a graph is captured.

    On every rank::

        tftune.bind(dist.group.WORLD)
        workspace = tftune.Workspace.create(dist.group.WORLD, payload_bytes=1 << 22)
        shapes = [tftune.AllGatherGemm(m, 64, 128, workspace.world) for m in (1, 16)]
        answers = tftune.warm_up(shapes, workspace, budget_s=0.1, rows="rows.jsonl")
        assert tftune.select_kernel(shapes[0]) == answers[shapes[0]]
    """
    import torch

    on_gpu = workspace.device.type == "cuda"
    if on_gpu and torch.cuda.is_current_stream_capturing():
        what = "tftune.warm_up was called while a graph is captured"
        raise ValueError(f"{what}; call it once before all captures")
    ranks = Ranks(workspace)
    check_kind("shapes", shapes, Iterable, "a sequence of shapes")
    where = None if rows is None else os.fspath(rows)
    options = top, mode, where, budget_s, deadline_s, sandbox, again
    request = agreed(
        ranks, lambda: Request(tuple(dict.fromkeys(shapes)), *options).check(workspace)
    )
    selector = bound()
    here = ranks.together(lambda: Here.of(workspace, selector))[0]
    kept = open_memory(workspace, here) if where is None else View(Path(where), "")
    answers: Answers = {} if again else kept.of(request.shapes, mode)
    new = _measured_here(request, workspace, here, selector, kept.rows, answers)
    if where is None:
        selections = {(mode, shape): selection for shape, selection in new.items()}
        remember(workspace, here, selections, payload_bytes(*request.shapes), again)
    for shape in request.shapes:
        selector.confirm(shape, mode, answers[shape])
    if on_gpu:
        torch.cuda.empty_cache()  # what was only timed had plans, graphs and operands
    tftune.use(copy(selector))  # another key: plans that tftune.ops made before are not found
    return {shape: answers[shape] for shape in request.shapes}


def open_memory(workspace: Workspace, here: Here) -> View:
    """What the first rank of the workspace's group remembers of this machine. Collective."""
    return Ranks(workspace).by_first(lambda: Memory.open(here.identity(workspace)).view)


def remember(
    workspace: Workspace,
    here: Here,
    answers: Mapping[Place, Selection],
    payload_bytes: int,
    again: bool = False,
) -> None:
    """Keep answers and the largest payload on disk. Collective.

    An answer that rests on no measurement, as where memory was short, is not kept. The next start
    tries it again, and finds nothing that was compiled by it.
    """
    lasting = {place: one for place, one in answers.items() if one.source in LASTING}

    def keep() -> None:
        memory = Memory.open(here.identity(workspace))
        if again:
            memory.renew(lasting)
        memory.keep(lasting, payload_bytes)
        if len(lasting) < len(answers):
            memory.renew()

    Ranks(workspace).by_first(keep)


def _measured_here(
    request: Request,
    workspace: Workspace,
    here: Here,
    selector: Selector,
    rows: Path,
    answers: Answers,
) -> Answers:
    """Fill in the answers that are missing; returns the new ones. Nothing is started where none
    is."""
    known = set(answers)
    if missing := [shape for shape in request.shapes if shape not in answers]:
        ranks = Ranks(workspace)
        run, left_out = ranks.by_first(lambda: _begin(rows, here))
        scene = Scene(workspace, ranks, here, rows, run)
        in_children = here.arch not in PROVEN if request.sandbox is None else request.sandbox
        bench = InChildren(scene) if in_children else InPlace(scene)
        try:
            Confirming(scene, request, selector, left_out, bench).fill(families(missing), answers)
            ranks.by_first(lambda: append(rows, [replace(run, ended=clocks())], ()))
        finally:
            bench.close()
    return {shape: answers[shape] for shape in request.shapes if shape not in known}


def _begin(rows: Path, here: Here) -> tuple[Run, Excluded]:
    """On rank 0: what an earlier process left in a journal becomes rows; this run, and what it must
    not launch."""
    for trial in recover(rows):
        text = trial.outcome.text if isinstance(trial.outcome, Failure) else ""
        logger.warning("left out: config=%s shape=%s reason=%s", trial.config, trial.shape, text)
    run = Run(uuid4().hex[:12], here.target, "node", here.build, now(), clocks())
    return run, excluded(rows, here.target, here.triton)


class Confirming:
    """One warm-up on one rank: rounds of shapes, each compiled side by side, then measured."""

    def __init__(
        self,
        scene: Scene,
        request: Request,
        selector: Selector,
        left_out: Excluded,
        bench: InPlace | InChildren,
    ) -> None:
        self._scene, self._request, self._selector = scene, request, selector
        self._left_out, self._bench = set(left_out), bench

    def fill(self, groups: Sequence[Sequence[Shape]], answers: Answers) -> None:
        """An answer for every shape of these families: by the configs that are likely to be fast,
        then by small changes of the fastest."""
        while shapes := [shape for family in groups for shape in step(family, answers)]:
            first = self._visited(self._ordered(shapes))
            looks = {order.shape: (order, outcomes) for order, outcomes in first.items()}
            for order, outcomes in self._visited(self._closer(first)).items():
                if may_decide(outcomes, winner(looks[order.shape][1])):
                    looks[order.shape] = order, outcomes
            for shape, (order, outcomes) in looks.items():
                before = self._selector.select(shape, order.mode)
                answers[shape] = decided(order, outcomes, before)
            if self._scene.ranks.rank == 0:
                for shape in shapes:
                    logger.info("confirmed: shape=%s config=%s", shape, answers[shape].config)

    def _ordered(self, shapes: Sequence[Shape]) -> list[Order]:
        """What to measure at each shape. Rank 0 decides: it reads files that others may not see."""
        orders = self._scene.ranks.by_first(lambda: list(map(self._order, shapes)))
        alone = [order for order in orders if not order.candidates]
        if alone and self._request.top and self._scene.ranks.rank == 0:
            reason = self._selector.select(alone[0].shape, self._request.mode).reason
            counts = len(alone), len(orders), reason
            logger.warning("BSP alone is confirmed: shapes=%d of=%d reason=%s", *counts)
        return orders

    def _order(self, shape: Shape) -> Order:
        may_run = partial(self._may_run, shape)
        request, here, selector = self._request, self._scene.here, self._selector
        first, *others = _forms(shape, request.mode, selector, here)
        forms = first, *filter(may_run, others)  # without a first there is nothing to fall back to
        tried = candidates(shape, request.mode, selector, here, request.top, may_run)
        limits = request.budget_s, request.deadline_s
        return Order(shape, request.mode, forms, tried, *limits, here.target, self._scene.run.id)

    def _may_run(self, shape: Shape, config: Config) -> bool:
        return _named(shape, config) not in self._left_out

    def _closer(self, first: Mapping[Order, Mapping[Config, Outcome]]) -> list[Order]:
        """Another look at the shapes where a fused config came near BSP: that one beside what
        differs from it in one knob. Rank 0 decides, as before."""

        def closer(order: Order, outcomes: Mapping[Config, Outcome]) -> Order | None:
            form, best, won = best_form(outcomes), runner_up(outcomes), winner(outcomes)
            if form is None or best is None or won is None or not self._request.top:
                return None
            tried = [
                config
                for config in changes(order.shape, order.mode, best, self._scene.here.chip)
                if config not in outcomes and self._may_run(order.shape, config)
            ]
            known = dict.fromkeys([best] if won.variant == BSP else [best, won])
            candidates = *known, *tried[: self._request.top]
            return replace(order, forms=(form,), candidates=candidates) if tried else None

        def orders() -> list[Order]:
            return [one for seen in first.items() if (one := closer(*seen)) is not None]

        return self._scene.ranks.by_first(orders)

    def _visited(self, orders: Sequence[Order]) -> dict[Order, Mapping[Config, Outcome]]:
        """Compile side by side, then measure; the rows are on disk when this returns."""
        self._scene.ranks.by_first(partial(_compile, orders, self._scene.here))
        return {order: self._measured(order) for order in orders}

    def _measured(self, order: Order) -> Mapping[Config, Outcome]:
        scene, shape = self._scene, order.shape
        listed = *order.forms[1:], *order.candidates
        kept = order.without(c for c in listed if not self._may_run(shape, c))
        outcomes, stored = self._bench.measure(kept)
        self._left_out |= {_named(shape, c) for c, each in outcomes.items() if _is_excluding(each)}
        trials = [order.row(c, outcome) for c, outcome in outcomes.items() if c not in stored]
        scene.ranks.by_first(partial(append, scene.rows, [scene.run], trials))
        return outcomes


def _compile(orders: Sequence[Order], here: Here) -> None:
    """All kernels of all shapes into Triton's cache, side by side; ranks then load them."""
    if here.chip is not None:
        pairs = [(order.shape, c) for order in orders for c in (*order.forms, *order.candidates)]
        compile_ahead(new_jobs(pairs, here.chip), processes())


def _forms(shape: Shape, mode: str, selector: Selector, here: Here) -> list[Config]:
    """The likely forms of BSP, registered ones too, and the one that is selected, if one is."""
    space = operation(shape.op).space
    likely = [*space.defaults(shape, here.chip), selector.select(shape, mode).config]
    forms = dict.fromkeys(space.complete(config) for config in likely if config.variant == BSP)
    return [form for form in forms if space.why_invalid(shape, form, here.chip) is None]


def _named(shape: Shape, config: Config) -> tuple[str, Config, str]:
    """As what is not launched again is named."""
    return shape.op, config, installed(shape.op, config.variant)


def _is_excluding(outcome: Outcome) -> bool:
    return isinstance(outcome, Failure) and outcome.kind in EXCLUDING


def decided(order: Order, outcomes: Mapping[Config, Outcome], before: Selection) -> Selection:
    """The selection that these outcomes support, and in its reason the figures.

    Where BSP could not be measured, what was selected `before` stays, unless it failed here.
    """
    config = winner(outcomes)
    if config is not None:
        return _measured(order.shape, config, outcomes)
    failed = {c: outcome for c, outcome in outcomes.items() if isinstance(outcome, Failure)}
    kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(f.kind for f in failed.values()).items())
    said = f"tftune.warm_up could not measure BSP here ({kinds or 'nothing ran'})"
    if before.config in failed:
        return Selection(order.forms[0], "fallback", f"{said}, and {before.config} failed")
    return replace(before, reason=f"{before.reason}; {said}")


def _measured(shape: Shape, config: Config, outcomes: Mapping[Config, Outcome]) -> Selection:
    """The selection of a winner, and its figures: its time, BSP's in the same rounds, and the
    interval of their ratio."""
    own = outcomes[config]
    if not isinstance(own, Measurement):
        raise ValueError(f"{config} was not measured: {own.text}")
    us, rounds, near = own.median_us, f"{len(own.samples_us)} rounds", (shape.sizes_key,)
    said = "measured here by tftune.warm_up"
    if config.variant == BSP:
        return Selection(
            config,
            "measured",
            f"{said}: BSP takes {us:.1f} us over {rounds}; {_best_other(outcomes)}",
            us,
            us,
            near=near,
        )
    bsp_us = us * (own.speedup or 1.0)
    times = f"{config.variant} takes {us:.1f} us and BSP {bsp_us:.1f} us"
    reason = f"{said}: {times}, {_ratio(own)} over {rounds}"
    return Selection(config, "measured", reason, us, bsp_us, own.speedup_interval, near)


def _ratio(found: Measurement) -> str:
    low, high = found.speedup_interval or (1.0, 1.0)
    return f"{found.speedup or 1.0:.2f} times as fast (95 % interval {low:.2f} to {high:.2f})"


def _best_other(outcomes: Mapping[Config, Outcome]) -> str:
    """Why no fused config was taken, in words."""
    fused = {c: outcome for c, outcome in outcomes.items() if c.variant != BSP}
    known = {c: measured for c, measured in fused.items() if isinstance(measured, Measurement)}
    if known:
        best = max(known, key=lambda config: known[config].speedup or 0.0)
        return f"the best other config, {best.variant}, is {_ratio(known[best])}"
    if fused:
        config, outcome = next(iter(fused.items()))
        kind = outcome.kind if isinstance(outcome, Failure) else ""
        return f"no other config could be measured ({config.variant}: {kind})"
    return "no other config was tried"
