"""Parts of the GEMM that are arithmetic on integers, read without a GPU."""

from __future__ import annotations

import pytest

from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.chips import MI300X

pytest.importorskip("triton")


def test_every_program_has_one_place_by_die_for_every_grid() -> None:
    """A remap that is right only for multiples of the dies would compute some tiles twice and others never."""
    from tftune.kernels.gemm import by_die

    dies = next(choice.values for choice in SPACE.choices("push") if choice.name == "xcds")
    for xcds in dies:
        for programs in range(1, MI300X.units + 1):
            assert sorted(by_die.fn(number, programs, xcds) for number in range(programs)) == list(range(programs)), (programs, xcds)


def test_a_die_takes_neighbouring_places() -> None:
    from tftune.kernels.gemm import by_die

    places = [by_die.fn(number, 43, 8) for number in range(43)]
    assert places[0::8] == [0, 1, 2, 3, 4, 5] and places[1::8] == [6, 7, 8, 9, 10, 11] and places[3::8] == [18, 19, 20, 21, 22]
    assert [by_die.fn(number, 43, 1) for number in range(43)] == list(range(43))
