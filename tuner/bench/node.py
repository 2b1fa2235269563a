"""The node bench: real ranks under the sandbox. Compile ahead on the CPU, agree, check, then time
beside BSP; a failure is a row."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tftune.db import target as machine
from tftune.db.target import Target
from tftune.db.trial import Failure, Measurement, Outcome
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.tuner.bench import faults
from tftune.tuner.bench.benches import Bench
from tftune.tuner.bench.cache_selftest import CopyRates
from tftune.tuner.bench.compile_pool import CompilePool
from tftune.tuner.bench.rounds import DEADLINES, ROUNDS, Deadlines, Rounds, ratio
from tftune.tuner.bench.sandbox import Broken, RankError, World, slowest
from tftune.tuner.bench.worker import WorldSpec, operand_bytes

logger = logging.getLogger(__name__)

OUT_OF = ("OutOfResources", "OutOfMemoryError")
"""What Triton and torch raise on a rank where the chip has too little of something."""


class NodeBench(Bench):
    """Measures on as many ranks of this machine as the shape asks for; emulated ones exercise the
    same protocol, not its speed.

    `measure` never raises for a config: a hang, a crash, a wrong result are Failures, after which
    the world is started again.
    """

    def __init__(
        self,
        target: Target,
        payload_bytes: int,
        *,
        emulated: bool = False,
        deadlines: Deadlines = DEADLINES,
        rounds: Rounds = ROUNDS,
        inject: Callable[[Shape, Config], str | None] | None = None,
        lengths: str = "",
    ) -> None:
        """`payload_bytes`: what the largest shape needs of one generation. `inject`: the fault of
        `faults.FAULTS` that a drill lets a config run into before it is timed; rows of a drill are
        of a bench of their own. `lengths`: as rows name them; of every call that is timed, where
        given. Starts nothing yet."""
        self.target = target
        self.condition = f"lengths={lengths}" if lengths else ""
        self._lengths = lengths
        self.name = "node" if inject is None else "drill"
        self._emulated, self._payload_bytes = emulated, payload_bytes
        self._deadlines, self._rounds = deadlines, rounds
        self._inject = inject or (lambda shape, config: None)
        self._world: World | None = None
        self._verdicts: dict[tuple[Shape, Config], float | Failure] = {}
        self._compiler = None if emulated else CompilePool(target.chip, deadlines.compile)
        self.spent_s: dict[str, float] = defaultdict(float)
        """Wall-clock seconds that trials waited: for the compiler, and for the ranks by what they
        were asked to do."""
        self._best: dict[tuple[Shape, str], float] = {}
        self._copies: CopyRates | None = None
        self.starts_s: list[float] = []
        """Seconds that each start of a world took."""
        self.recoveries_s: list[float] = []
        """Seconds from when a world was seen to be broken until a fresh one could measure again:
        ending the old one, starting ranks, preparing BSP. What the search does in between is not
        counted."""
        self._down_s: float | None = None
        """The same so far, while no world is ready after a broken one."""

    def ahead(self, shape: Shape, configs: Sequence[Config]) -> None:
        if self._compiler is not None:
            self._compiler.ahead(shape, configs)

    def ready(self, shape: Shape, config: Config) -> bool:
        return self._compiler is None or self._compiler.ready(shape, config)

    def settle(self, timeout_s: float) -> None:
        if self._compiler is not None:
            began = time.monotonic()
            self._compiler.settle(timeout_s)
            self.spent_s["compile"] += time.monotonic() - began

    def _compile_failure(self, shape: Shape, config: Config) -> Failure | None:
        if self._compiler is None:
            return None
        began = time.monotonic()
        failure = self._compiler.failure(shape, config)
        self.spent_s["compile"] += time.monotonic() - began
        return failure

    def conditions(self) -> dict[str, Any]:
        """Clocks by GPU as they are now, and the copy rates of the world whose caches looked the
        least cold."""
        copies = {"copy_gb_s": self._copies.gb_s} if self._copies else {}
        return {} if self._emulated else machine.clocks() | copies

    def _impossible(self, shape: Shape, config: Config) -> Failure | None:
        """Why a config need not be tried on any rank: a rule, or its compiler."""
        chip = None if self._emulated else self.target.chip
        if sentence := operation(shape.op).space.why_invalid(shape, config, chip):
            return Failure("invalid", sentence)
        return self._compile_failure(shape, config)

    def measure(
        self,
        shape: Shape,
        config: Config,
        mode: str,
        baseline: Config | None,
        *,
        stage: str = "search",
    ) -> Outcome:
        if failure := self._impossible(shape, config):
            return failure
        if config.variant == "bsp" and self._failed(shape, config):
            del self._verdicts[shape, config]  # a library's: it may have been the machine
        try:
            world, failed = self._ready(shape, baseline)
            if failed:
                return Failure(failed.kind, f"BSP beside it failed: {failed.text}")
            verdict = self._verdict(world, shape, config)
            return (
                verdict
                if isinstance(verdict, Failure)
                else self._timed(world, shape, config, mode, baseline, stage, verdict)
            )
        except Broken as broken:
            self._broke()
            return broken.failure

    def compare(
        self, shape: Shape, configs: Sequence[Config], mode: str, baseline: Config
    ) -> list[Outcome]:
        """Outcomes of the baseline and of each config, timed in the same rounds of the final stage,
        so that they compare in pairs.

        One that fails before it is timed is left out; where one ends the world, each is measured
        alone beside the baseline.
        """
        try:
            return self._together(shape, (baseline, *configs), mode)
        except Broken as broken:
            self._broke()
            logger.warning(
                "finalists of %s in mode %s are timed one by one: %s", shape, mode, broken
            )
            return [
                self.measure(shape, config, mode, beside, stage="final")
                for config, beside in [(baseline, None), *((each, baseline) for each in configs)]
            ]

    def _together(self, shape: Shape, group: Sequence[Config], mode: str) -> list[Outcome]:
        """Raises Broken where the world ended, or the baseline, the first of the group, failed."""
        world, outcomes, errors = self._ranks(shape), dict[Config, Outcome](), dict[Config, float]()
        for config in group:
            verdict = self._impossible(shape, config) or self._verdict(world, shape, config)
            if not isinstance(verdict, Failure):
                errors[config] = verdict
            elif not errors or not world.alive:
                raise Broken(verdict.kind, verdict.text)
            else:
                outcomes[config] = verdict
        samples = self._compared(world, shape, list(errors), mode)
        for config, error in errors.items():
            self._verify_alone(world, shape, config, mode)
            rounds = len(samples[config])
            outcomes[config] = Measurement(
                samples[config], samples[group[0]][:rounds], error, rounds < self._rounds.final
            )
        return [outcomes[config] for config in group]

    def _compared(
        self, world: World, shape: Shape, group: list[Config], mode: str
    ) -> dict[Config, tuple[float, ...]]:
        """Samples of each config in the same rounds beside the first, the baseline; few of them for
        those far behind the best."""
        rounds = self._rounds
        count = rounds.probe if rounds.final_margin else rounds.final
        samples = dict(zip(group, self._slowest(world, shape, group, mode, count), strict=True))
        if going := rounds.contenders(samples):
            more = self._slowest(world, shape, going, mode, rounds.final - rounds.probe)
            for config, times in zip(going, more, strict=True):
                samples[config] += times
        return samples

    def _verify_alone(self, world: World, shape: Shape, config: Config, mode: str) -> None:
        """Check what the timed calls of one of several configs compute: they share outputs, so it
        runs once more. Raises Broken."""
        self._slowest(world, shape, [config], mode, 1)
        if wrong := self._verify(world, shape, config):
            raise Broken(wrong.kind, wrong.text)
        if config.variant != "bsp":
            self._forget(world, shape, config, mode)

    def _ready(self, shape: Shape, baseline: Config | None) -> tuple[World, Failure | None]:
        """A live world with the baseline prepared and checked, or why that failed. Raises Broken
        where no world starts."""
        began = time.monotonic()
        try:
            world = self._ranks(shape)
            failed = None if baseline is None else self._baseline_failure(shape, baseline)
        finally:
            if self._down_s is not None:
                self._down_s += time.monotonic() - began
        if self._down_s is not None and world.alive:
            self.recoveries_s.append(self._down_s)
            self._down_s = None
        return world, failed

    def _baseline_failure(self, shape: Shape, baseline: Config) -> Failure | None:
        """It was measured before: what fails once may have been the machine, and is tried again;
        what failed twice is not. Raises Broken where no world starts."""
        known = self._failed(shape, baseline)
        if known or (failed := self._tried(shape, baseline)) is None:
            return known
        logger.warning("BSP of %s failed, and is tried again: %s", shape, failed.text)
        del self._verdicts[shape, baseline]
        return self._tried(shape, baseline)

    def _tried(self, shape: Shape, baseline: Config) -> Failure | None:
        """Why the baseline fails in a live world."""
        world = self._ranks(shape)
        try:
            self._verdict(world, shape, baseline)
        except Broken:
            self._broke()
        return self._failed(shape, baseline)

    def _failed(self, shape: Shape, config: Config) -> Failure | None:
        """Why a config is known to fail in these worlds."""
        verdict = self._verdicts.get((shape, config))
        return verdict if isinstance(verdict, Failure) else None

    def _broke(self) -> None:
        """The world was ended since it was broken: a recovery begins, unless one is under way."""
        if self._down_s is None and self._world is not None:
            self._down_s = self._world.ended_s

    def _ranks(self, shape: Any) -> World:
        """A live world of the size that the shape asks for, with room for its operands on the heap.
        Raises Broken where it does not start."""
        cache = 0 if self._emulated else self.target.chip.cache_bytes
        on_heap = operand_bytes(shape, cache)
        world = self._world
        if world is None or world.size != shape.world or world.operand_bytes < on_heap:
            if world is not None:
                world.kill()
            sizes = shape.world, self._emulated, self._payload_bytes, cache, on_heap
            spec = WorldSpec(Path(), *sizes, self._lengths)
            self._world = world = World(spec, self.spent_s)
        if not world.alive:
            self.starts_s.append(world.start())
            if not self._emulated:
                self._prove_cold(world)
        return world

    def _prove_cold(self, world: World) -> None:
        """Keep the copy rates of the rank with the fastest cold copy, of all worlds, and warn where
        they do not look cold."""
        worst: CopyRates = max(
            world.request("copy_rates", (), self._deadlines.check), key=lambda rates: rates.cold
        )
        if self._copies is None or worst.cold > self._copies.cold:
            self._copies = worst
            if sentence := worst.why_not_cold(self.target.chip):
                logger.warning("%s: %s", self.target, sentence)

    def _verdict(self, world: World, shape: Shape, config: Config) -> float | Failure:
        """The check's largest error over ranks, or why the config may not be timed: the verdict of
        all ranks together, kept."""
        fault = self._inject(shape, config)
        try:
            world.request("prepare", (shape, config, fault), self._deadlines.prepare)
            if (shape, config) not in self._verdicts:
                verdict = self._check(world, shape, config, fault)
                self._verdicts[shape, config] = (
                    faults.marked(verdict, fault) if isinstance(verdict, Failure) else verdict
                )
        except RankError as error:
            kind = "resources" if error.name in OUT_OF else "compile"
            self._verdicts[shape, config] = faults.marked(Failure(kind, str(error)[:500]), fault)
        except Broken as broken:
            broken.failure = self._verdicts[shape, config] = faults.marked(broken.failure, fault)
            raise
        return self._verdicts[shape, config]

    def _check(
        self, world: World, shape: Shape, config: Config, fault: str | None
    ) -> float | Failure:
        replies = world.request("check", (shape, config, fault), self._deadlines.check)
        worst = max(error for error, _ in replies)
        return worst if worst <= replies[0][1] else self._wrong(world, replies)

    def _wrong(self, world: World, replies: list[tuple[float, float]]) -> Failure:
        """A wrong result may have left epochs or flags that differ between ranks: this world ends
        with it."""
        world.kill()
        self._broke()
        worst, tolerance = max(error for error, _ in replies), replies[0][1]
        ranks = [rank for rank, (error, _) in enumerate(replies) if not error <= tolerance]
        return Failure(
            "wrong", f"relative error {worst:.3g} on ranks {ranks} is above {tolerance:.3g}"
        )

    def _timed(
        self,
        world: World,
        shape: Shape,
        config: Config,
        mode: str,
        baseline: Config | None,
        stage: str,
        error: float,
    ) -> Outcome:
        """Rounds beside the baseline; then what the timed calls computed is checked, too, since a
        graph may hold less than it should."""
        configs = [config] if baseline is None else [baseline, config]
        try:
            samples, stopped = self._time(world, shape, configs, mode, stage)
            wrong = self._verify(world, shape, config)
        except Broken as broken:
            self._verdicts[shape, config] = broken.failure
            raise
        if wrong:
            return wrong
        if baseline is not None:
            self._forget(world, shape, config, mode)
        return Measurement(samples[-1], samples[0], error, stopped)

    def _verify(self, world: World, shape: Shape, config: Config) -> Failure | None:
        """Why what this config, timed last, left in its output is wrong; None where it is right."""
        replies = world.request("verify", (shape,), self._deadlines.check)
        if max(timed for timed, _ in replies) <= replies[0][1]:
            return None
        wrong = self._verdicts[shape, config] = self._wrong(world, replies)
        return wrong

    def _forget(self, world: World, shape: Shape, config: Config, mode: str) -> None:
        world.request("forget", (shape, config, mode), self._deadlines.prepare)

    def _time(
        self, world: World, shape: Shape, configs: list[Config], mode: str, stage: str
    ) -> tuple[list[tuple[float, ...]], bool]:
        """Samples of each config, slowest rank by round; and whether it was stopped early. All
        ranks stop alike: the supervisor decides, from the samples of all."""
        rounds = self._rounds
        if stage != "search":
            return self._slowest(world, shape, configs, mode, rounds.final), False
        samples = self._slowest(world, shape, configs, mode, rounds.probe)
        while (done := len(samples[0])) < rounds.search:
            if rounds.cannot_win(samples, self._best.get((shape, mode), 1.0)):
                return samples, True
            more = self._slowest(world, shape, configs, mode, min(done, rounds.search - done))
            samples = [one + other for one, other in zip(samples, more, strict=True)]
        low, _ = ratio(samples[0], samples[-1])
        self._best[shape, mode] = max(low, self._best.get((shape, mode), 1.0))
        return samples, False

    def _slowest(
        self, world: World, shape: Shape, configs: list[Config], mode: str, rounds: int
    ) -> list[tuple[float, ...]]:
        deadline_s = self._deadlines.time * max(1.0, len(configs) / 2)
        replies = world.request("time", (shape, configs, mode, rounds), deadline_s)
        return [slowest([samples[index] for samples in replies]) for index in range(len(configs))]

    def restart(self) -> None:
        """End the world; the next measurement starts a fresh one. What was checked is checked
        again."""
        if self._world is not None:
            self._world.kill()
        self._verdicts.clear()

    def close(self) -> None:
        if self._world is not None:
            self._world.kill()
        if self._compiler is not None:
            self._compiler.close()
