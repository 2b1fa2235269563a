"""Several nodes: GPUs linked inside a node, a network between nodes, and ranks that start apart.

No machine here has more than one node, so whatever these constants lead to is simulated, never
measured. `studies.nodes.play` plays calls on a topology; `studies/nodes/published.py` holds
SHARE, RING_HOP_US and TREE_HOP_US against public runs of NCCL and RCCL. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log2, sqrt
from random import Random

SHARE = 0.96
"""The share of a NIC's line rate that collectives reach. Fitted by `studies/nodes/published.py
--fit`."""
RING_HOP_US = 20.0
"""What each node adds to the latency of a ring, besides its own GPUs. Fitted likewise."""
TREE_HOP_US = 15.0
"""What each level of nodes adds to the latency of an all-reduce by trees. Fitted likewise."""
TREE_LEAF_US = 15.0
"""Latency of that all-reduce within a node: 8 H20 take 12 to 17 us for 4 bytes to 4 KB
(github.com/deepseek-ai/DeepEP/issues/303)."""
SEEDS = 200
"""Draws of start times for each figure."""
FIRST_SEED = 20261123


@dataclass(frozen=True, order=True)
class Nic:
    """One network card. Rates of one direction, in bytes or messages per microsecond."""

    name: str
    line_bytes_per_us: float
    """Its line rate."""
    latency_us: float
    """One way, GPU memory to GPU memory, a few bytes, through one switch."""
    messages_per_us: float
    """Puts that it takes."""
    spine_us: float
    """What a message takes longer that leaves its rail: two more switches."""

    @property
    def bytes_per_us(self) -> float:
        """What large transfers reach."""
        return SHARE * self.line_bytes_per_us


_IB_US = 1.8
"""ib_send_lat between GPUs, ConnectX-5: 1.72 to 1.83 us (github.com/linux-rdma/perftest/pull/98);
assumed of newer cards."""
_IB_MESSAGES = 215.0
"""ConnectX-6 (docs.nvidia.com/networking/display/ConnectX6EN/Introduction); assumed of
ConnectX-7."""
_SWITCHES_US = 0.7
"""Two switches of 350 ns, Slingshot's Rosetta
(systemspecbase.com/slingshot-interconnect-11-performance-and-network-topology-data); assumed of
InfiniBand."""

NICS = {
    nic.name: nic
    for nic in (
        Nic("hdr", 25e3, _IB_US, _IB_MESSAGES, _SWITCHES_US),  # 200 Gb/s
        Nic("ndr", 50e3, _IB_US, _IB_MESSAGES, _SWITCHES_US),  # 400 Gb/s
        # 200 Gb/s. Latency 2.3 to 3.3 us, and 2.57 million messages of one byte per second in both
        # directions by one MPI process: two Grace Hopper nodes, OSU 7.5
        # (eessi.io/docs/blog/2026/05/11/EESSI-on-Cray-Slingshot-part2). A GPU that posts by itself
        # may reach more.
        Nic("slingshot", 25e3, 2.4, 1.3, _SWITCHES_US),
    )
}
"""By name, as `tftune study nodes --nic` takes them."""


def nic_named(name: str) -> Nic:
    """Raises ValueError, with the known names, for another one."""
    if name not in NICS:
        raise ValueError(f"{name!r} is no known NIC; there are {', '.join(NICS)}")
    return NICS[name]


@dataclass(frozen=True, order=True)
class Topology:
    """So many nodes of so many GPUs. Raises ValueError naming what does not fit."""

    nodes: int
    gpus: int
    nic: Nic
    nics: int = 0
    """In each node; 0: one for each GPU. NIC i is on rail i: one switch joins the NICs i of all
    nodes."""

    def __post_init__(self) -> None:
        if self.nodes < 1 or self.gpus < 1:
            raise ValueError(f"nodes={self.nodes} and gpus={self.gpus} must be at least 1")
        if self.nics < 0:
            raise ValueError(f"nics={self.nics} must be at least 0, which is one for each GPU")

    @property
    def world(self) -> int:
        return self.nodes * self.gpus

    @property
    def cards(self) -> int:
        return self.nics or self.gpus

    @property
    def node_bytes_per_us(self) -> float:
        """All NICs of a node together."""
        return self.cards * self.nic.bytes_per_us

    @property
    def gpu_bytes_per_us(self) -> float:
        """The share of one GPU in the NICs of its node."""
        return self.node_bytes_per_us / self.gpus

    @property
    def gpu_messages_per_us(self) -> float:
        return self.cards * self.nic.messages_per_us / self.gpus

    def peer(self, rank: int, number: int) -> int:
        """The rank that a rank needs as its peer `number`: the GPUs of its own node first, then
        node after node, its own rail first in each.

        >>> from tftune.studies.nodes.topology import NICS, Topology
        >>> [Topology(2, 4, NICS["ndr"]).peer(1, number) for number in range(7)]
        [2, 3, 0, 5, 6, 7, 4]
        """
        node, gpu = divmod(rank, self.gpus)
        if number < self.gpus - 1:
            return node * self.gpus + (gpu + 1 + number) % self.gpus
        away, place = divmod(number - (self.gpus - 1), self.gpus)
        return (node + 1 + away) % self.nodes * self.gpus + (gpu + place) % self.gpus

    def starts_us(self, skew_us: float, seed: int) -> list[float]:
        """When each rank starts, normal about 0 with this standard deviation, in microseconds."""
        draw = Random(FIRST_SEED + seed)
        return [draw.gauss(0.0, skew_us) if skew_us else 0.0 for _ in range(self.world)]


def ring_all_gather_us(
    topology: Topology, bytes_per_rank: float, node_us: float, ring_bytes_per_us: float = inf
) -> float:
    """A library's all-gather by rings through all ranks, which cross nodes on every NIC.

    node_us: latency of the same within one node; ring_bytes_per_us: what a ring reaches there. All
    data but a rank's own crosses each node's boundary, so that more nodes do not make it faster.
    """
    rate = min(topology.node_bytes_per_us, ring_bytes_per_us)
    latency_us = topology.nodes * (node_us + RING_HOP_US)
    return latency_us + bytes_per_rank * (topology.world - 1) / rate


def tree_all_reduce_us(topology: Topology, size: float, node_bytes_per_us: float = inf) -> float:
    """A library's all-reduce of `size` bytes by two trees over the nodes.

    A node sends all data once (two nodes) or, inside a tree, twice. Chunks are pipelined over the
    levels: with the best chunk, data that take D and a path that takes L take
    (sqrt(D) + sqrt(L))^2. node_bytes_per_us: all-reduced bytes per microsecond within one node.
    """
    crossings = min(topology.nodes, 3) - 1
    moved_us = max(size * crossings / topology.node_bytes_per_us, size / node_bytes_per_us)
    latency_us = TREE_LEAF_US + TREE_HOP_US * log2(topology.nodes)
    return (sqrt(moved_us) + sqrt(latency_us)) ** 2
