"""Parts of the GEMM that are arithmetic on integers, read without a GPU."""

from __future__ import annotations

import itertools

import pytest

from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.chips import MI300X
from tftune.kernels.core.space import Space
from tftune.kernels.flash_decode.space import SPACE as DECODE
from tftune.kernels.flash_decode.workloads import SHAPE_SETS

pytest.importorskip("triton")

from tftune.kernels.device.gemm import by_die
from tftune.kernels.device.shards import chunk_and_peer

MOST_UNITS = 32 * MI300X.units
"""The most units of flash_decode where it splits, by a rule of its space."""


def values(space: Space, variant: str, name: str) -> tuple[int, ...]:
    return next(choice.values for choice in space.choices(variant) if choice.name == name)


def test_every_program_has_one_place_by_die_for_every_grid() -> None:
    """A remap that is right only for multiples of the dies would compute some tiles twice and
    others never. flash_decode gives a place to every unit of work, up to the most that its rules
    allow."""
    shapes = {(shape.batch, shape.kv_heads) for make in SHAPE_SETS.values() for shape in make()}
    units = {
        batch * kv_heads * splits
        for batch, kv_heads in shapes
        for splits in values(DECODE, "persistent", "kv_splits")
    }
    counts = {
        *range(1, MI300X.units + 1),
        *range(MOST_UNITS - 7, MOST_UNITS + 1),
        *(count for count in units if count <= MOST_UNITS),
    }
    for xcds in {*values(SPACE, "push", "xcds"), *values(DECODE, "persistent", "xcds")}:
        for programs in sorted(counts):
            places = [by_die.fn(number, programs, xcds) for number in range(programs)]
            assert sorted(places) == [*range(programs)], (programs, xcds)


def test_a_die_takes_neighbouring_places() -> None:
    places = [by_die.fn(number, 43, 8) for number in range(43)]
    runs = [places[die::8] for die in (0, 1, 3)]
    assert runs == [[*range(6)], [*range(6, 12)], [*range(18, 23)]]
    assert [by_die.fn(number, 43, 1) for number in range(43)] == list(range(43))


@pytest.mark.parametrize("order", ["chunk", "column", "group"])
def test_every_order_moves_every_chunk_to_every_peer_once(order: str) -> None:
    for rows, columns, peers, band in itertools.product(
        (1, 2, 5, 8, 9), (1, 2, 3), (1, 3, 7), (1, 2, 8, 16)
    ):
        items = range(rows * columns * peers)
        moved = [chunk_and_peer.fn(item, rows, columns, peers, band, order) for item in items]
        assert sorted(moved) == [*itertools.product(range(rows * columns), range(peers))]


def test_orders_say_what_comes_first() -> None:
    """Three row chunks of two column chunks, numbered along K first, to two peers."""

    def moves(order: str, band: int) -> list[tuple[int, int]]:
        return [chunk_and_peer.fn(item, 3, 2, 2, band, order) for item in range(12)]

    assert moves("chunk", 1)[:5] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]
    assert moves("column", 1)[:5] == [(0, 0), (0, 1), (2, 0), (2, 1), (4, 0)]
    assert moves("group", 3)[:7] == [(0, 0), (2, 0), (4, 0), (1, 0), (3, 0), (5, 0), (0, 1)]
    first = [(0, 0), (2, 0), (1, 0), (3, 0), (0, 1), (2, 1), (1, 1), (3, 1), (4, 0)]
    assert moves("group", 2)[:9] == first
