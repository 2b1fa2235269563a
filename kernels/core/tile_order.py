"""Which tile each program of a GEMM computes, turn after turn: `kernels.device.gemm` in plain
numbers, for models. A test holds the two together. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass


def by_die(number: int, programs: int, dies: int) -> int:
    """A program's place where each die takes a run of neighbours.

    >>> [by_die(number, 6, 2) for number in range(6)]
    [0, 3, 1, 4, 2, 5]
    """
    die, within = number % dies, number // dies
    return die * (programs // dies) + min(die, programs % dies) + within


def tile_order(tile: int, tiles_m: int, tiles_n: int, group_m: int) -> tuple[int, int]:
    """Row and column tile of a linear index: `group_m` row tiles before the next column tile.

    >>> [tile_order(tile, 3, 2, 2) for tile in range(6)]
    [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)]
    """
    group, within = divmod(tile, group_m * tiles_n)
    height = min(tiles_m - group * group_m, group_m)
    return group * group_m + within % height, within // height


@dataclass(frozen=True)
class Grid:
    """The tiles of a GEMM, and the programs that compute them: each takes the piece of its place,
    then the one that lies `programs` further. A piece is one of `split_k` parts of a tile."""

    tiles_m: int
    tiles_n: int
    group_m: int
    split_k: int
    programs: int
    xcds: int

    @property
    def pieces(self) -> int:
        return self.tiles_m * self.tiles_n * self.split_k

    @property
    def turns(self) -> int:
        """How many tiles the busiest program computes."""
        return -(-self.pieces // self.programs)

    def piece(self, program: int, turn: int) -> tuple[int, int, int] | None:
        """Row tile, column tile and part; None where the program has ended.

        >>> Grid(2, 2, 1, 1, programs=2, xcds=1).piece(1, 1)
        (1, 1, 0)
        """
        number = by_die(program, self.programs, self.xcds) + turn * self.programs
        if program >= self.programs or number >= self.pieces:
            return None
        return *tile_order(number // self.split_k, self.tiles_m, self.tiles_n, self.group_m), (
            number % self.split_k
        )
