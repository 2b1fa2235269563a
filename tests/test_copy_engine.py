"""The order of streams in an exchange by copy engine: streams write down what they wait for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from lone import lone

pytest.importorskip("triton")

from tftune.kernels.comm import copy_engine
from tftune.kernels.comm.copy_engine import Exchange, HostRuntime, Piece, SideStreams

Log = list[tuple[str, str]]
SHARD = 1 << 20
PIECES = (Piece(0, 100, 64), Piece(64, 200, 64))


class Stream:
    def __init__(self, name: str, log: Log) -> None:
        self.name, self.log = name, log

    def wait_stream(self, other: Stream) -> None:
        self.log.append((self.name, f"waits for {other.name}"))


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[Log]:
    """What each stream does, in the order in which the host queues it."""
    entries: Log = []
    main = Stream("main", entries)
    monkeypatch.setattr(copy_engine, "_main", lambda stream: main)
    yield entries


def exchange(log: Log, streams: int) -> Exchange:
    """An exchange of two pieces to one peer, whose flags lie at 1 and at 2."""
    made: Any = Exchange.__new__(Exchange)
    made._staged = torch.zeros(1, dtype=torch.int32)
    made._workspace = SimpleNamespace(turns=count(), control=0, control_bases=None, rank=0, world=2)
    made._start = lambda *arguments: log.append(("main", "starts"))
    made._streams = [Stream(f"side {number}", log) for number in range(streams)]
    made._items = [[(piece, piece.target, flag) for flag, piece in enumerate(PIECES, 1)]] * 2

    def copy(piece: Piece, target: int, source: int, stream: Stream) -> None:
        log.append((stream.name, f"copies to {target}"))

    made._runtime = SimpleNamespace(copy=copy)
    found: Exchange = made
    return found


def test_a_plan_of_another_size_reads_nothing_of_the_gpu() -> None:
    """A read of its memory would wait for all that is queued there."""
    reads = []

    class Bases:
        def tolist(self) -> list[int]:
            reads.append(self)
            return [1 << 20, 1 << 21]

    workspace = lone(generation_bytes=1 << 20, bases=Bases())
    made = [Exchange(workspace, (0, 64), [Piece(0, 0, 64 * rows)], 1) for rows in (1, 2, 3)]
    (_, target, flag_at), *_ = made[-1]._items[1]
    assert target == (1 << 21) + 64 and flag_at > 1 << 21 and len(reads) == 2


@pytest.mark.parametrize("streams", [1, 2])
def test_side_streams_follow_the_epoch_and_the_call_ends_behind_their_copies(
    log: Log, streams: int
) -> None:
    """Else flags would carry an old epoch, or a caller would overwrite a shard on its way."""
    copies = exchange(log, streams)
    sides = [f"side {number}" for number in range(streams)]
    parity = copies.begin()
    assert log == [("main", "starts"), *((side, "waits for main") for side in sides)]
    log.clear()
    copies.send(parity, SHARD)
    assert len(log) == 4 and {name for name, _ in log} == set(sides)
    log.clear()
    copies.join()
    assert log == [("main", f"waits for {side}") for side in sides]


@pytest.mark.parametrize("streams", [1, 2])
def test_a_flag_is_copied_right_behind_its_piece_in_the_same_stream(log: Log, streams: int) -> None:
    exchange(log, streams).send(0, SHARD)
    for flag, piece in enumerate(PIECES, 1):
        at = [what for _, what in log].index(f"copies to {piece.target}")
        assert log[at + 1] == (log[at][0], f"copies to {flag}")
    assert len({name for name, _ in log}) == streams


@pytest.mark.parametrize("streams", [1, 2])
def test_one_piece_follows_what_the_main_stream_has_so_far(log: Log, streams: int) -> None:
    """Else rows would be sent before they are computed."""
    copies = exchange(log, streams)
    for slot, (flag, piece) in enumerate(enumerate(PIECES, 1)):
        log.clear()
        copies.send_one(0, slot, 1, SHARD)
        side = f"side {slot % streams}"
        found = ["waits for main", f"copies to {piece.target}", f"copies to {flag}"]
        assert log == [(side, what) for what in found]


def test_what_is_queued_beside_follows_the_main_stream_and_is_joined(log: Log) -> None:
    sides: Any = SideStreams.__new__(SideStreams)
    sides.runtime, sides.streams = HostRuntime(), [Stream("side", log)]
    with sides.beside(0):
        log.append(("side", "reduces"))
    sides.join()
    assert log == [("side", "waits for main"), ("side", "reduces"), ("main", "waits for side")]


def test_copies_are_queued_before_the_kernel_that_waits_for_those_of_peers(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all streams share one hardware queue, a kernel before them would wait for ever."""
    from tftune.kernels.all_gather_gemm import AllGatherGemm, host
    from tftune.kernels.all_gather_gemm.variants import push_ce
    from tftune.kernels.core.space import Config

    monkeypatch.setattr(push_ce, "exchange", lambda *given: exchange(log, 1))
    shape = AllGatherGemm(16, 32, 64, 2, "fp16", "m")
    place = SimpleNamespace(arch="cuda", payload=0, generation_bytes=1 << 20)
    config = Config("push_ce", rows_per_flag=16, copy_streams=1)
    a = torch.zeros(8, 64, dtype=torch.float16)
    beside: Any = host._beside_copies
    beside(shape, config, place, lambda *_: log.append(("main", "multiplies")))(a, a, a)
    steps = [step for _, step in log]
    assert steps.index("copies to 2") < steps.index("multiplies") < len(steps) - 1
    assert steps[-1] == "waits for side 0"


def test_generations_take_turns(log: Log) -> None:
    copies = exchange(log, 1)
    assert [copies.begin() for _ in range(4)] == [0, 1, 0, 1]
