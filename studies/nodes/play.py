"""all_gather_gemm over several nodes: simulated, never measured.

A call is the one of a single node (`kernels/all_gather_gemm/timeline.py`) with another exchange and
one more lane, the NIC. On one node without skew it is that call, so that the times are equal. The
kernels of today hold flags of 16 ranks and write to GPUs of their own node only: nothing here can
run. Ranks start apart; the last one to end counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil
from statistics import median
from typing import Any

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.exchange import Chunks, Exchange, push
from tftune.kernels.all_gather_gemm.timeline import describe
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.space import Config
from tftune.kernels.core.timeline_ir import WAIT, Gate, Stage
from tftune.models.timeline.costs import LARGE_MESSAGE, Costs
from tftune.models.timeline.simulator import gated
from tftune.studies.nodes.topology import RING_HOP_US, SEEDS, Topology, ring_all_gather_us

VARIANTS = {
    "bsp": "the library's all-gather by rings through all ranks, then its GEMM",
    "bsp_hierarchical": "the library's all-gather over each rail, then within nodes, then its GEMM",
    "push_flat": "every rank puts each chunk to every other rank",
    "push_rail": "the same, through the GPU of its node on the receiver's rail",
    "push_hierarchical": "one put of each chunk to each node; its receiver stores it to the others",
}
"""By name, what is simulated."""
RING_BYTES_PER_US = 365e3
"""What NCCL's rings reach within a node of NVLink4 and NVSwitch: 365 to 370 GB/s
(github.com/NVIDIA/nccl/issues/1455)."""
POST_US = 1.0
"""What a program spends on posting one put and its flag. Assumed: about a release at system scope,
`signal_us` of a chip."""
PARTS = 8
"""Stages in which what came over the network is stored to the other GPUs of the node."""


@dataclass(frozen=True)
class Simulated:
    """The times of one variant over all seeds, in microseconds: simulated."""

    low_us: float
    """The time that 5 % of the seeds stay below."""
    us: float
    """The median."""
    high_us: float
    """The time that 95 % stay below."""


@dataclass(frozen=True)
class FabricCosts(Costs):
    """Costs of a node, whose library gathers over all nodes of a topology."""

    topology: Topology | None = None
    hierarchical: bool = False

    def all_gather(self, bytes_per_rank: int, world: int, registered: bool = False) -> Stage:
        fabric = self.topology
        if fabric is None or fabric.nodes == 1:
            return super().all_gather(bytes_per_rank, world, registered)
        node = super().all_gather(0, fabric.gpus)
        times = 2 if bytes_per_rank >= LARGE_MESSAGE else 1
        sent = float(bytes_per_rank * (fabric.world - 1))
        if not self.hierarchical:
            ring = RING_BYTES_PER_US if self.chip.switched else self.links.rate(fabric.gpus)
            us = ring_all_gather_us(fabric, bytes_per_rank, times * node.us, ring)
            return Stage(us, 2 * sent, 0.0, tax=WAIT)
        away_us = fabric.nodes * RING_HOP_US * times
        away_us += bytes_per_rank * (fabric.nodes - 1) / fabric.gpu_bytes_per_us
        inside = super().all_gather(bytes_per_rank * fabric.nodes, fabric.gpus, registered)
        us = away_us + self.rates.graph_launch_us + inside.us
        return Stage(us, 2 * sent, inside.link_bytes, tax=WAIT)


class _Fabric:
    """The exchange of a push over one or several nodes. `describe` asks for arrivals by (row,
    column, peer); each becomes a number, which `gate` turns into what the stage waits for."""

    def __init__(self, topology: Topology, variant: str) -> None:
        self.topology, self.variant = topology, variant
        self.asked: list[tuple[int, int, int]] = []

    def exchange(self, costs: Any, shape: AllGatherGemm, chunks: Chunks, programs: int) -> Exchange:
        fabric = self.topology
        self.chunks, self.programs = chunks, programs
        self.count = chunks.rows * chunks.columns
        self.chunk_bytes = shape.shard_bytes / self.count
        self.copy_us = costs.copy_us(chunks.blocks, 1)
        self.inside = _Node(shape, fabric)
        self.local = push(costs, self.inside, chunks, programs)  # type: ignore[arg-type]
        stages = [*self.local.stages, *self._posts(), *self._forwards()]

        def arrived(row: int, column: int, peer: int) -> float:
            self.asked.append((row, column, peer))
            return float(len(self.asked) - 1)

        return Exchange(stages, chunks, arrived)

    @property
    def away(self) -> int:
        """Puts of each chunk."""
        fabric = self.topology
        one = self.variant == "push_hierarchical"
        return (fabric.nodes - 1) * (1 if one else fabric.gpus)

    def _posts(self) -> list[Stage]:
        """Programs post puts; on another GPU's rail the chunk goes there first."""
        rounds = ceil(self.count * self.away / self.programs)
        if not rounds:
            return []
        if self.variant != "push_rail":
            return [Stage(rounds * POST_US, units=0.0)]
        moved = self.chunk_bytes * self.count * self.away * (1 - 1 / self.topology.gpus)
        return [Stage(rounds * (POST_US + self.copy_us), 2 * moved, moved, 0.0)]

    def _forwards(self) -> list[Stage]:
        """What came over the network goes on to the other GPUs of the node, part after part."""
        fabric, others = self.topology, self.topology.gpus - 1
        if self.variant != "push_hierarchical" or not self.away or not others:
            return []
        total = self.count * self.away
        rounds, moved = ceil(total * others / self.programs), self.chunk_bytes * total * others
        flight = fabric.nic.latency_us
        return [
            Stage(
                rounds / PARTS * self.copy_us, moved / PARTS, moved / PARTS, rounds / PARTS,
                Gate(1, total * part / PARTS, flight),
            )
            for part in range(1, PARTS + 1)
        ]  # fmt: skip

    def ending(
        self, sending: list[Stage], computing: list[Stage], closing: Stage
    ) -> tuple[list[Stage], ...]:
        """The NIC's lane, of several nodes, and the computing one, which ends when both have."""
        if self.topology.nodes == 1:
            return ([*computing, closing],)
        nic = self.nic(sending[0])
        sent = Stage(0.0, units=0.0, after=Gate(1, sum(stage.units for stage in nic)))
        return nic, [*computing, sent, closing]

    def nic(self, launch: Stage) -> list[Stage]:
        """The lane of this GPU's share of the NICs; its units are puts. Flags are messages, too."""
        fabric, total = self.topology, self.count * self.away
        size = self.chunk_bytes * total
        us = max(size / fabric.gpu_bytes_per_us, 2 * total / fabric.gpu_messages_per_us)
        us = max(us, ceil(total / self.programs) * POST_US)
        return [launch._replace(units=0.0), Stage(us, 2 * size, 0.0, float(total))]

    def gate(self, gate: Gate) -> Gate:
        """What a stage waits for that asked for this arrival."""
        row, column, peer = self.asked[int(gate.units)]
        fabric, mates = self.topology, self.topology.gpus - 1
        if peer < mates or fabric.nodes == 1:
            return gate._replace(units=self.local.arrived(row, column, peer))
        node, place = divmod(peer - mates, fabric.gpus)
        chunk = self.chunks.place(row, column, 0, 1)
        if self.variant == "push_hierarchical" and place:
            total = self.count * self.away
            share = (chunk * self.away + node + 1) / total
            before = sum(stage.units for stage in self.local.stages)
            rounds = ceil(total * mates / self.programs)
            return gate._replace(units=before + share * rounds)
        flight = gate.flight_us + fabric.nic.latency_us
        if self.variant == "push_flat" and place:
            flight += fabric.nic.spine_us
        number = node if self.variant == "push_hierarchical" else peer - mates
        return Gate(1, float(chunk * self.away + number + 1), flight)


class _Node:
    """A shape as the exchange within one node sees it: this rank's shard, and that many ranks."""

    def __init__(self, shape: AllGatherGemm, topology: Topology) -> None:
        self.world, self.shard_bytes = topology.gpus, shape.shard_bytes


@dataclass(frozen=True)
class Run:
    """One variant of one shape, played once without skew."""

    topology: Topology
    us: float
    waits: tuple[tuple[float, float, tuple[int, ...]], ...]
    """For each gated stage, when its gate opened, the work from then on, and the peers that it
    needs first."""
    whole: bool
    """Whether nothing can go on before every rank has come: BSP."""

    @cached_property
    def work_us(self) -> float:
        """The lane's work alone, were all data there when a rank starts."""
        return max((rest for _, rest, _ in self.waits), default=self.us)

    def end_us(self, starts: list[float], rank: int) -> float:
        """When a rank ends, if ranks start then."""
        late = starts[rank] + min(self.work_us, self.us)
        for open_us, rest_us, peers in self.waits:
            come = max(starts[self.topology.peer(rank, peer)] for peer in peers)
            late = max(late, come + open_us + rest_us)
        return late

    def call_us(self, starts: list[float]) -> float:
        """When the last rank ends."""
        latest_us = max(starts) + self.us
        if self.whole or not any(starts):
            return latest_us
        last = 0.0
        for rank in range(len(starts)):
            last = max(last, self.end_us(starts, rank))
            if last > latest_us - 1e-3:  # none ends later than the last one to start would alone
                break
        return min(last, latest_us)

    def over_seeds(self, skew_us: float, seeds: int = SEEDS) -> Simulated:
        """Over so many draws of start times, normal with this standard deviation."""
        if not skew_us:
            return Simulated(self.us, self.us, self.us)
        times_us = sorted(
            self.call_us(self.topology.starts_us(skew_us, seed)) for seed in range(seeds)
        )
        edge = len(times_us) // 20
        return Simulated(times_us[edge], median(times_us), times_us[-1 - edge])


@lru_cache(maxsize=4096)
def run(
    shape: AllGatherGemm, variant: str, config: Config, mode: str, chip: Chip, topology: Topology
) -> Run:
    """Play a variant. `config`: of `bsp` its form, of a push its knobs. Raises ValueError for an
    unknown variant and where the shape has not the topology's ranks."""
    if variant not in VARIANTS:
        raise ValueError(f"{variant!r} is no simulated variant; there are {', '.join(VARIANTS)}")
    if shape.world != topology.world:
        raise ValueError(
            f"world={shape.world} of {shape} must be nodes x gpus = {topology.nodes} x "
            f"{topology.gpus} = {topology.world}"
        )
    if variant.startswith("bsp"):
        costs = FabricCosts(chip, topology.gpus, topology, variant == "bsp_hierarchical")
        call = describe(costs, shape, config, mode)._replace(world=topology.gpus)
        return Run(topology, gated(call, chip)[0], (), True)
    return _waits(shape, config, mode, chip, _Fabric(topology, variant))


def _waits(shape: AllGatherGemm, config: Config, mode: str, chip: Chip, fabric: _Fabric) -> Run:
    """A push, with the peers that each of its waits needs."""
    topology = fabric.topology
    call = describe(Costs(chip, topology.gpus), shape, config, mode, fabric.exchange)
    sending, (*stages, closing) = call.lanes[0], call.lanes[-1]
    computing, needs = [], {}
    for number, stage in enumerate(stages):
        gate = stage.after
        if gate is not None:
            needs[number] = fabric.asked[int(gate.units)][2]
            stage = stage._replace(after=fabric.gate(gate))
        computing.append(stage)
    lanes = sending, *fabric.ending(sending, computing, closing)
    us, waiting = gated(call._replace(world=topology.gpus, lanes=lanes), chip)
    numbers = sorted(needs)
    waits = []
    for wait in waiting:
        if wait.stage in needs:
            place = numbers.index(wait.stage)
            following = needs[numbers[place + 1]] if place + 1 < len(numbers) else 0
            waits.append((wait.open_us, wait.rest_us, _peers(shape, needs[wait.stage], following)))
    return Run(topology, us, tuple(waits), False)


def _peers(shape: AllGatherGemm, peer: int, following: int) -> tuple[int, ...]:
    """The peers that a stage needs which waits for this one, before the next stage's."""
    if shape.shard == "m":
        return tuple(range(peer + 1))
    return tuple(range(peer, following)) if following > peer else tuple(range(shape.world - 1))
