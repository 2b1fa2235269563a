"""A few configs of one shape, tried and timed beside BSP by the ranks that will serve it.

Unlike a world of the sandbox, these processes must live on. So nothing is launched before all ranks
have compiled it, each launch is on disk before it happens, and a watchdog ends the process where a
kernel spins. Outputs are held against BSP's, which needs no memory for an exact reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tftune.db.evidence import BSP
from tftune.db.trial import Failure, Outcome
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.kernels.runtime.plan import timed_part
from tftune.tuner.bench import clock
from tftune.tuner.bench.check import delay, poison, relative_error
from tftune.tuner.bench.node import OUT_OF
from tftune.tuner.bench.watchdog import EXIT_CODE, deadline
from tftune.tuner.warm_up.contest import Samples, affordable, contest, measured
from tftune.tuner.warm_up.order import Order, Site

if TYPE_CHECKING:
    import torch

COMPILE_S = 600.0
"""For compiling all configs of one shape: a compiler that hangs must not hold a server for ever."""
GRACE_S = 2.0
"""Ranks other than 0 wait so much longer: rank 0 writes the journal, and a launcher ends all ranks
with the first."""
LONG_S = 5e-3
"""A call that takes as long reads so much memory that caches stay cold without a rotation."""
FULL = (0, 2)
"""Seeds of the operands that are timed, by turns: no call sees the data of the one before it."""
CHECKS = (0, 1, 1, 0)
"""Which of two seeds each back-to-back call of a check takes. A long call is checked by the first
two, which use both generations of the workspace."""
ROUNDINGS = 2
"""A result and BSP's are each rounded once: they may differ by so many of the tolerances that each
may differ from the exact result."""
CHUNK = 1 << 26
"""Elements of an output that are compared at a time, since the comparison is in fp32."""
OVERHEAD_S = 5e-4
"""What one timed round of one config costs beside its calls: the sleep that hides launches, and
events."""
UNTIMED = {"graph": 2, "eager": 4}
"""Calls of a round for each timed one, that one included."""


class Confirmation:
    """One order on one rank. Plans, graphs and operands live as long as this object."""

    def __init__(self, order: Order, site: Site) -> None:
        self.order, self.site, self.ranks = order, site, site.ranks
        self.outcomes: dict[Config, Outcome] = {}
        self._op = operation(order.shape.op)
        self._reference = self._op.module("reference")
        self._plans: dict[Config, Any] = {}
        self._graphs: dict[Config, clock.GraphCall] = {}
        self._sets: dict[int, tuple[Any, ...]] = {}
        """Inputs and output by seed."""
        self._timed: list[tuple[Any, ...]] = []
        self._results: dict[int, torch.Tensor] = {}
        """What BSP's first form computes, by seed."""
        self._checks: tuple[int, ...] = CHECKS
        self._errors: dict[Config, float | None] = {}
        self._round_s: dict[Config, float] = {}

    def run(self) -> dict[Config, Outcome]:
        """The outcome of every config that was tried; a measurement's BSP is the strongest form."""
        self._prepare((*self.order.forms, *self.order.candidates))
        began = self.site.now()
        forms = [form for form in self.order.forms if form in self._plans]
        if not forms or not self._allocate(forms):
            return self.outcomes
        for config in (*forms, *self.order.candidates):
            if config in self._plans and (self._results or config.variant == "bsp"):
                self._try(config)
        if any(form in self._round_s for form in forms):
            self._time(began)
        return self.outcomes

    def _prepare(self, configs: Sequence[Config]) -> None:
        """Compile everything on every rank; what one rank cannot have, no rank launches.

        Each rank begins with another config: Triton's cache then has what the others compiled.
        """
        errors: dict[Config, tuple[str, str]] = {}
        first = self.ranks.rank % len(configs)
        with self._in_time(COMPILE_S, configs, "compiling", lambda: None):
            for config in (*configs[first:], *configs[:first]):
                try:
                    self._plans[config] = self._prepared(config)
                except Exception as error:  # whatever it is, the other ranks wait to hear of it
                    errors[config] = type(error).__name__, str(error)
            told = self.ranks.gather(errors)
        for rank, its_errors in enumerate(told):
            for config, (name, text) in its_errors.items():
                kind = "resources" if name in OUT_OF else "compile"
                self._give_up(config, Failure(kind, f"rank {rank}: {name}: {text}"[:500]))

    def _prepared(self, config: Config) -> Any:
        host = self._op.module("host")
        return host.prepare(self.order.shape, config, self.site.workspace)

    def _give_up(self, config: Config, failure: Failure) -> None:
        self._plans.pop(config, None)
        self._graphs.pop(config, None)
        self._round_s.pop(config, None)
        self.outcomes.setdefault(config, failure)

    def _allocate(self, forms: Sequence[Config]) -> bool:
        """Operands to rotate over, on every rank or on none: a server's memory may be full."""
        why = None
        try:
            self._make_operands()
        except Exception as error:  # the other ranks wait to hear of it
            why = f"{type(error).__name__}: {error}"
        told = enumerate(self.ranks.gather(why))
        texts = [f"rank {rank}: {text}" for rank, text in told if text]
        for form in forms if texts else ():
            self._give_up(form, Failure("resources", texts[0][:500]))
        return not texts

    @property
    def _check_seeds(self) -> tuple[int, int]:
        """Seeds of the operands that are checked; ragged ones, where there are some, are not
        timed."""
        return FULL[0], getattr(self._reference, "RAGGED_SEED", FULL[1])

    def _make_operands(self) -> None:
        """Sets for the check and for the rotation, which goes on with copies of its first two."""
        shape, workspace = self.order.shape, self.site.workspace
        for seed in dict.fromkeys((*FULL, *self._check_seeds)):
            self._sets[seed] = (
                *self._reference.make_inputs(shape, workspace.rank, seed, workspace.device),
                self._reference.make_output(shape, workspace.device),
            )
        self._timed = [self._sets[seed] for seed in FULL]
        size = sum(tensor.nbytes for tensor in self._timed[0][:-1])
        count = 2 if self.site.emulated else clock.copies(size, self.site.cache_bytes)
        for number in range(2, count):
            self._timed.append(tuple(tensor.clone() for tensor in self._timed[number % 2]))

    def _try(self, config: Config) -> None:
        """Check a config, run it as it will be timed, check that: the verdict is of all ranks."""
        with self._launching([config], "its check"):
            failure = self._checked(config) or self._rehearsed(config)
        if failure is not None:
            self._give_up(config, failure)
            self._begin_anew()

    def _checked(self, config: Config) -> Failure | None:
        plan = self._plans[config]
        if not self._results:
            return self._referred(config)
        poison(self.site.workspace)
        self._errors[config], failure = self._agreed(lambda: self._error(plan))
        return failure

    def _referred(self, config: Config) -> Failure | None:
        """Take what this form of BSP computes for right, and see how long its call takes."""
        plan = self._plans[config]
        results: dict[int, torch.Tensor] = {}
        _, failure = self._agreed(lambda: self._refer(plan, results))
        if failure is not None:
            return failure
        self._results, self._errors[config] = results, None
        seconds, failure = self._clocked(lambda: plan(*self._sets[FULL[0]]))
        if seconds > LONG_S and not self.site.emulated:
            self._checks, self._timed = CHECKS[:2], self._timed[:1]
        return failure

    def _agreed(self, check: Callable[[], float]) -> tuple[float, Failure | None]:
        """The largest error that any rank saw, and why the config may not go on.

        `check` has no collectives but those of a config: it may raise on one rank alone.
        """
        error, text = math.inf, ""
        try:
            error = check()
        except Exception as raised:  # the other ranks wait to hear of it
            text = f"{type(raised).__name__}: {raised}"
        told = self.ranks.gather((error, text))
        worst, tolerance = max(error for error, _ in told), self._tolerance
        raised_on = [f"rank {rank}: {text}" for rank, (_, text) in enumerate(told) if text]
        if raised_on:
            kind = "resources" if any(name in raised_on[0] for name in OUT_OF) else "crash"
            return worst, Failure(kind, raised_on[0][:500])
        if worst <= tolerance:
            return worst, None
        ranks = [rank for rank, (error, _) in enumerate(told) if not error <= tolerance]
        text = f"its result and BSP's differ by {worst:.3g} on ranks {ranks}, above {tolerance:.3g}"
        return worst, Failure("wrong", text)

    @property
    def _tolerance(self) -> float:
        return ROUNDINGS * float(self._reference.tolerance(self.order.shape))

    def _refer(self, plan: Any, results: dict[int, torch.Tensor]) -> float:
        """Fill in what BSP computes from each seed; infinite where that is not finite."""
        for seed, (*inputs, output) in self._sets.items():
            output.fill_(math.nan)
            plan(*inputs, output)
            results[seed] = output.clone()
        finite = all(bool(result.isfinite().all()) for result in results.values())
        return 0.0 if finite else math.inf

    def _clocked(self, call: Callable[[], object]) -> tuple[float, Failure | None]:
        """Seconds from idle GPUs to the end on the slowest rank, and why a rank did not end."""
        seconds = 0.0

        def run() -> float:
            nonlocal seconds
            began = self.site.now()
            call()
            self.site.wait()
            seconds = self.site.now() - began
            return 0.0

        self.ranks.barrier()
        _, failure = self._agreed(run)
        return self.ranks.slowest([[seconds]])[0][0], failure

    def _error(self, plan: Any) -> float:
        """The largest relative difference to BSP over back-to-back calls, some ranks being late."""
        workspace = self.site.workspace
        seeds = [self._check_seeds[which] for which in self._checks]
        outputs = [self._sets[seed][-1] for seed in seeds[:2]]
        outputs += [output.clone() for output in outputs[: len(seeds) - 2]]
        for number, (seed, output) in enumerate(zip(seeds, outputs, strict=True)):
            output.fill_(math.nan)
            if number // 2 % workspace.world == workspace.rank:
                delay(workspace)
            plan(*self._sets[seed][:-1], output)
        return self._worst(zip(outputs, seeds, strict=True))

    def _worst(self, outputs: Iterable[tuple[torch.Tensor, int]]) -> float:
        """The largest relative difference to what BSP computed from the operands of each seed."""
        pairs = [(output, self._results[seed]) for output, seed in outputs]
        rows = max(1, CHUNK // max(1, pairs[0][0][0].numel()))
        return max(
            relative_error(part, right.float())
            for output, result in pairs
            for part, right in zip(output.split(rows), result.split(rows), strict=True)
        )

    def _rehearsed(self, config: Config) -> Failure | None:
        """Run it as it will be timed, which captures its graph; check what that computes."""
        made: list[tuple[Callable[[], object], int]] = []

        def capture() -> float:
            made.append(self._call(config))
            return 0.0

        _, failure = self._agreed(capture)
        if failure is not None:
            return failure
        ((call, count),) = made
        outputs = [output for *_, output in self._timed[:count]]
        for output in outputs:
            output.fill_(math.nan)
        seconds, failure = self._clocked(call)
        plan = self._plans[config]
        if failure is None and timed_part(plan) is not plan:  # what is timed writes to no output
            _, failure = self._clocked(lambda: [plan(*one) for one in self._timed[:count]])
        calls = 1 if self.site.emulated else UNTIMED[self.order.mode]
        self._round_s[config] = calls * seconds + OVERHEAD_S
        return failure or self._agreed(lambda: self._worst(zip(outputs, FULL, strict=False)))[1]

    def _call(self, config: Config) -> tuple[Callable[[], object], int]:
        """What one timed sample runs, and how many of the first two sets it computes."""
        plan = timed_part(self._plans[config])
        if self.order.mode == "graph" and not self.site.emulated:
            graph = self._graphs[config] = clock.GraphCall(plan, self._timed)
            return graph.replay, min(2, len(self._timed))
        return lambda: plan(*self._timed[0]), 1

    def _begin_anew(self) -> None:
        """After a failure epochs and turns may differ between ranks."""
        self.ranks.barrier()
        self.site.workspace.agree(self.ranks.gather)
        self.ranks.barrier()

    def _time(self, began: float) -> None:
        """Rounds of all that is right, within what is left of the budget."""
        ((spent_s,),) = self.ranks.slowest([[self.site.now() - began]])
        left_s = self.order.budget_s - spent_s
        entrants = affordable(self._round_s, left_s)
        with self._launching(entrants, "timing"):
            samples = contest(entrants, self._rounds, left_s)
        self.outcomes |= measured(samples, self._errors)

    def _rounds(self, configs: Sequence[Config], count: int) -> tuple[Samples, float]:
        """As `contest.TimeRounds` says: the slowest rank of each round, by one all-reduce."""
        plans = [timed_part(self._plans[config]) for config in configs]
        began = self.site.now()
        if self.site.emulated:
            samples = clock.host_rounds(plans, self._timed, count, self.site.barrier)
        elif self.order.mode == "eager":
            samples = clock.eager_rounds(plans, self._timed, count, self.site.barrier)
        else:
            graphs = [self._graphs[config] for config in configs]
            together, agree = self.site.start_together, self.ranks.agreed
            samples = clock.graph_rounds(graphs, count, together, agree)
        took_s = self.site.now() - began
        *slowest, took = self.ranks.slowest([*samples, [took_s] * count])
        rounded = (tuple(max(0.01, round(us, 2)) for us in row) for row in slowest)
        return dict(zip(configs, rounded, strict=True)), took[0]

    @contextmanager
    def _launching(self, configs: Sequence[Config], phase: str) -> Iterator[None]:
        """On disk and on the clock before anything is on the GPU. A library's form of BSP is blamed
        for nothing that kernels beside it may have done: without it the next start would hold them
        against a weaker one, at every shape."""
        order, journal = self.order, self.site.journal
        blamed = [config for config in configs if config.variant != BSP] or configs

        def expect(kind: str, text: str) -> None:
            journal.expect([order.row(config, Failure(kind, text)) for config in blamed])

        hung = f"ranks had not ended {phase} after {order.deadline_s:g} s in tftune.warm_up"
        expect("crash", f"the process ended during {phase} in tftune.warm_up")
        try:
            with self._in_time(order.deadline_s, configs, phase, lambda: expect("hang", hung)):
                yield
        except Exception as error:
            expect("crash", f"rank 0: {type(error).__name__}: {error}"[:500])
            raise
        except BaseException:  # Ctrl-C is no config's fault
            journal.expect(())
            raise
        journal.expect(())

    @contextmanager
    def _in_time(
        self,
        seconds: float,
        configs: Sequence[Config],
        phase: str,
        before_end: Callable[[], None],
    ) -> Iterator[None]:
        names = ", ".join(map(str, configs))
        text = (
            f"tftune.warm_up: {names} at {self.order.shape}, mode {self.order.mode}: rank "
            f"{self.ranks.rank} had not ended {phase} after {seconds:g} s. A kernel that spins "
            f"cannot be stopped, so this process ends with code {EXIT_CODE}. Start it again: what "
            "was launched then is left out. Or try configs in child processes before weights are "
            "loaded: tftune.warm_up(..., sandbox=True)."
        )
        with deadline(seconds + GRACE_S * (self.ranks.rank > 0), text, before_end):
            yield
