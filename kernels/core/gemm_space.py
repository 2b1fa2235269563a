"""What a tiled GEMM in Triton may vary, and the rules that hold for any: shared by the operations
that fuse one. Standard library only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import Any

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.rounding import power_of_two_from
from tftune.kernels.core.space import Choice, Config, Rule

BLOCKS = (
    Choice("block_m", (16, 32, 64, 128, 256), "rows of C that one program computes at a time", 128),
    Choice("block_n", (32, 64, 128, 256), "columns of C that one program computes at a time", 128),
    Choice("block_k", (64, 128, 256), "length of one step along K", 64),
    Choice(
        "group_m",
        (1, 8),
        "row tiles visited before the next column tile, so that B stays in cache",
        8,
    ),
)
PIPELINE = (
    Choice("num_warps", (4, 8), "warps (waves) of one program", 8),
    Choice("num_stages", (2, 3, 4, 5), "depth of the software pipeline of the loop over K", 3),
)
LOADS = Choice(
    "loads",
    ("pointer", "descriptor"),
    "how tiles come: by pointers, or by tensor descriptors (Hopper's TMA)",
    "pointer",
    "descriptors",
)
STREAMS = Choice(
    "copy_streams",
    (1, 3, 7),
    "side streams that copies are dealt out to: more let several copy engines work at once",
    1,
)


Knobs = Mapping[str, Any] | Config


def accumulators(config: Knobs, chip: Chip) -> float:
    """fp32 accumulators of one thread."""
    return float(config["block_m"] * config["block_n"] / (config["num_warps"] * chip.wave_size))


def fits_registers(config: Knobs, chip: Chip) -> bool:
    """CDNA, where two waves share a SIMD: a thread has half of its 512 registers of 4 bytes.
    Besides accumulators, it holds its part of the next step's tiles, and as much again on its way
    to the matrix units. Of 1,244 kernels of all_gather_gemm that Triton 3.7.1 compiled
    (db/audits/mi300x8) this refuses the 12 that spill, and no other."""
    threads = config["num_warps"] * chip.wave_size
    held = (config["block_m"] + config["block_n"]) * config["block_k"] / 2 / threads
    return bool(accumulators(config, chip) + 2 * held < 128)


def shared_bytes(shape: Any, config: Knobs, chip: Chip) -> int:
    """Tiles of A and B that the pipeline keeps. CDNA3 holds one stage in registers (Triton's stream
    pipeliner)."""
    stages = config["num_stages"] - chip.can.stage_in_registers
    steps = (config["block_m"] + config["block_n"]) * config["block_k"]
    return int(steps * shape.element_bytes * stages)


LIBRARY_TILE = 128, 256
"""Taken for the tile of a library's GEMM, which names none: what it is decides in which sizes its
last wave is full."""


def terms_of(config: Config, programs: int) -> Callable[[int, int, int], tuple[float, ...]]:
    """What the time of one config grows with, as a function of (m, n, k), on so many programs that
    compute: one call; the steps along K of the program with most tiles (rounds are whole), and of
    the mean program; elements of A, of B and of C; and tiles begun. Products are in millions, steps
    in thousands, so that weights are near 1."""
    knobs: dict[str, Any] = dict(config.knobs)
    block_m, block_n = knobs.get("block_m", LIBRARY_TILE[0]), knobs.get("block_n", LIBRARY_TILE[1])
    split = knobs.get("split_k", 1)

    def terms(m: int, n: int, k: int) -> tuple[float, ...]:
        tiles = -(-m // block_m) * -(-n // block_n) * split / programs
        rounds, steps = float(ceil(tiles)), k / split / 1e3
        return 1.0, rounds * steps, tiles * steps, m * k / 1e6, n * k / 1e6, m * n / 1e6, rounds

    return terms


def _aligned(shape: Any, config: Knobs) -> bool:
    columns = shape.inner if shape.b_layout == "nk" else shape.n
    return columns % 8 == 0 and shape.inner % int(config["block_k"]) == 0


COPY_BYTES = 1 << 18
"""What a copy must move at least: starting one costs about 2.7 us, in which a link moves more (an
NVLink4 pair, kernels/core/chips.py)."""


def copy_rule(copy_bytes: Callable[[Any, Knobs], int], variant: str = "push_ce") -> Rule:
    """What a chunk must be worth. `copy_bytes`: of its copy to one peer."""
    return Rule(
        f"a copy must move at least {COPY_BYTES >> 10} KB: take fewer chunks; a smaller call is no "
        "work for copy engines",
        lambda s, c, chip: chip is None or copy_bytes(s, c) >= COPY_BYTES,
        (variant,),
    )


CHUNK_ELEMENTS = 1 << 30
"""The most elements of a chunk, whose kernels count them in 32 bits."""


def chunk_rule(rows: Callable[[Any, Knobs], int], variant: str) -> Rule:
    """How large a chunk of rows may be that is added up at once. `rows`: of one chunk."""
    return Rule(
        "a chunk must have at most 2^30 elements, which are counted in 32 bits: take more chunks",
        lambda s, c, chip: rows(s, c) * s.n <= CHUNK_ELEMENTS,
        (variant,),
        required=True,
    )


def streams_rule(variants: tuple[str, ...]) -> Rule:
    """More side streams than peers would be idle."""
    return Rule(
        "copy_streams must be fewer than the ranks",
        lambda s, c, chip: c["copy_streams"] == 1 or c["copy_streams"] < s.world,
        variants,
    )


def default_streams(world: int, chip: Chip | None) -> int:
    """Side streams to try first. On private links (MI300X) what goes to one peer takes one of them,
    so that many must send at once."""
    private = chip is not None and not chip.switched
    return max(each for each in (1, 3, 7) if each < max(world, 2)) if private else 1


def tile_rules(variants: tuple[str, ...]) -> tuple[Rule, ...]:
    """The rules of BLOCKS, PIPELINE and LOADS, for shapes with m, n, `inner` (columns of A that one
    rank multiplies), b_layout and element_bytes."""
    return (
        Rule(
            "block_n must not exceed N rounded up to a power of two, and 32 at least",
            lambda s, c, chip: c["block_n"] <= max(32, power_of_two_from(s.n)),
            variants,
        ),
        Rule(
            "block_k must not exceed a rank's part of K rounded up to a power of two, and 64 at "
            "least",
            lambda s, c, chip: c["block_k"] <= max(64, power_of_two_from(s.inner)),
            variants,
        ),
        Rule(
            "a tile must give each thread at least 8 accumulators: take fewer warps",
            lambda s, c, chip: chip is None or c["num_warps"] == 4 or accumulators(c, chip) >= 8,
            variants,
        ),
        Rule(
            "a thread may hold at most 128 fp32 accumulators: take a smaller tile or more warps",
            lambda s, c, chip: chip is None or accumulators(c, chip) <= 128,
            variants,
        ),
        Rule(
            "where two waves share a SIMD (8 waves) a thread has 256 registers, and would spill: "
            "take a smaller tile",
            lambda s, c, chip: (
                chip is None
                or not chip.can.unified_registers
                or c["num_warps"] == 4
                or fits_registers(c, chip)
            ),
            variants,
            learned=True,
        ),
        Rule(
            "4 waves of 128 accumulators a thread spill with Triton 3.6: take a smaller tile or 8 "
            "waves",
            lambda s, c, chip: (
                chip is None
                or not chip.can.unified_registers
                or c["num_warps"] == 8
                or accumulators(c, chip) < 128
            ),
            variants,
            learned=True,
        ),
        Rule(
            "the pipeline's tiles must fit the chip's shared memory: take a smaller tile or fewer "
            "stages",
            lambda s, c, chip: chip is None or shared_bytes(s, c, chip) <= chip.shared_bytes,
            variants,
        ),
        # cuTensorMapEncodeTiled: rows 16 bytes apart.
        Rule(
            "descriptor loads need a rank's part of K to be a multiple of block_k, and N of 8 "
            "where B is [K, N]",
            lambda s, c, chip: c["loads"] == "pointer" or _aligned(s, c),
            variants,
        ),
    )
