"""The same confirmation in child processes: a hang costs a world of them, not a server.

Rank 0 of the server supervises; the other ranks have nothing on their GPUs meanwhile.
"""

from __future__ import annotations

from multiprocessing.connection import Connection
from pathlib import Path

from tftune.db.journal import Journal, NoJournal, recover
from tftune.db.trial import Outcome, Run, Trial
from tftune.kernels.core.space import Config
from tftune.tuner.bench import worker
from tftune.tuner.bench.processes import environment
from tftune.tuner.bench.sandbox import START_S, Broken, World
from tftune.tuner.bench.worker import WorldSpec
from tftune.tuner.warm_up.confirm import COMPILE_S, GRACE_S, Confirmation
from tftune.tuner.warm_up.order import Order, Site


class Rank(worker.Rank):
    """A rank whose one request is an order; it compiles in its own process, as a server does."""

    def confirm(self, order: Order, rows: Path, run: Run) -> dict[Config, Outcome]:
        """As `Confirmation.run` on every rank."""
        journal = Journal(rows, run) if self.rank == 0 else NoJournal()
        try:
            barriers = self.barrier, self._device_barrier()
            site = Site(self.workspace, journal, *barriers, self.spec.cache_bytes)
            return Confirmation(order, site).run()
        finally:
            journal.close()


def serve(connection: Connection, spec: WorldSpec, rank: int) -> None:
    """What each child process runs."""
    worker.main(connection, spec, rank, Rank)


class Supervisor:
    """Carries out orders in a world of child processes, a fresh one after each failure."""

    def __init__(self, spec: WorldSpec, rows: Path, run: Run, visible: dict[str, str]) -> None:
        """`rows`: where the children's journals lie, and failures are appended. `visible`: the
        environment variable that shows the children their GPUs. Starts nothing yet."""
        self._rows, self._run, self._visible = rows, run, visible
        self._world = World(spec, serve=serve)

    def confirm(self, order: Order) -> tuple[dict[Config, Outcome], list[Trial]]:
        """The outcomes, and the rows that failures of the world left in the file already.

        A config that ends the world is left out of the next try; the other rows of that try are
        lost with it. Where every form of BSP was in flight, nothing else is tried. Raises Broken
        where no world starts, or one ends before anything is launched.
        """
        left: list[Trial] = []
        while True:
            try:
                outcomes = self._request(order)
            except Broken:
                in_flight = [row for row in recover(self._rows) if row.run == self._run.id]
                left += in_flight
                order = order.without(trial.config for trial in in_flight)
                if not in_flight:
                    raise
                if not order.forms:
                    return {trial.config: trial.outcome for trial in left}, left
            else:
                return outcomes | {trial.config: trial.outcome for trial in left}, left

    def _request(self, order: Order) -> dict[Config, Outcome]:
        """What rank 0 of a live world replies. Raises Broken."""
        if not self._world.alive:
            with environment(self._visible):
                self._world.start()
        request = order, self._rows, self._run
        replies = self._world.request("confirm", request, limit_s(order))
        outcomes: dict[Config, Outcome] = replies[0]
        return outcomes

    def close(self) -> None:
        self._world.kill()


def limit_s(order: Order) -> float:
    """Seconds that an order may take in one world, whose own watchdog is far quicker."""
    configs = len(order.forms) + len(order.candidates)
    return COMPILE_S + order.budget_s + (configs + 1) * (order.deadline_s + GRACE_S)


def patience_s(order: Order) -> float:
    """Seconds after which the other ranks give rank 0 up: every config may end one world."""
    configs = len(order.forms) + len(order.candidates)
    return (configs + 1) * (START_S + limit_s(order))
