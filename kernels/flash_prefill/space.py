"""What may vary in flash_prefill: the library's backends, the knobs of the kernel, the rules, and
the configs to try first. Standard library only."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tftune.kernels.core.architecture import CUDA
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.rounding import power_of_two_from
from tftune.kernels.core.space import Choice, Config, Rule, Space
from tftune.kernels.flash_prefill import FlashPrefill
from tftune.kernels.flash_prefill.mapping import MAPPINGS, SWIZZLED

BACKENDS = ("auto", "flash", "cudnn", "efficient")
_KNOBS = (
    Choice(
        "mapping",
        MAPPINGS,
        "order in which programs take heads and blocks; swizzled: each die has its own heads",
        "naive_head_first",
    ),
    Choice("block_m", (64, 128, 256), "queries of one program", 128),
    Choice("block_n", (32, 64, 128), "tokens that one program loads at a time", 64),
    Choice("num_warps", (4, 8), "warps (waves) of one program", 8),
    Choice("num_stages", (1, 2, 3, 4), "depth of the software pipeline of the loop over tokens", 2),
    Choice(
        "loads",
        ("pointer", "descriptor"),
        "how keys and values are loaded: by addresses, or by tensor descriptors (TMA)",
        "pointer",
        "descriptors",
    ),
    Choice(
        "waves_per_eu",
        (0, 1, 2),
        "waves that registers must leave room for on each SIMD; 0 leaves it to the compiler",
        0,
        "occupancy_hint",
    ),
    Choice(
        "matrix_instr_nonkdim",
        (16, 32),
        "rows and columns of one matrix instruction",
        16,
        "unified_registers",
    ),
)
ACCUMULATORS = 192
"""The most fp32 accumulators that a thread holds: a block of the output and one of scores."""
CDNA_VALUES = 240
"""The most values of a thread with 512 registers: those of `_held`, and block_n for what the loop
computes."""
BARRIER_BYTES = 1024
"""Bytes of shared memory that Triton adds where descriptors load."""


def programs(shape: FlashPrefill, config: Config) -> int:
    """One for each block of queries of each head of each sequence."""
    return int(shape.batch * shape.q_heads * -(-shape.seq_len // config["block_m"]))


def _held(shape: FlashPrefill, config: Any, chip: Chip) -> int:
    """fp32 values of a thread: its part of the output and of the scores."""
    columns = shape.head_dim + config["block_n"]
    return int(config["block_m"] * columns // (chip.wave_size * config["num_warps"]))


def _shared_bytes(shape: FlashPrefill, config: Any, chip: Chip) -> int:
    """Blocks of keys and values that the pipeline keeps, one fewer than its stages where one is in
    registers; the queries, where products read shared memory; what descriptors wait at."""
    stages = max(config["num_stages"] - chip.can.stage_in_registers, 1)
    queries = config["block_m"] if chip.can.products_from_shared else 0
    rows = max(queries + 2 * stages * config["block_n"], config["block_m"])  # queries go by it
    barriers = BARRIER_BYTES if config["loads"] == "descriptor" else 0
    return int(rows * shape.head_dim * shape.element_bytes) + barriers


def _two_waves(config: Any) -> bool:
    """Whether two waves share a SIMD (CDNA): each then has 256 registers."""
    return bool(config["num_warps"] == 8 or config["waves_per_eu"] == 2)


RULES = (
    Rule("cuDNN is NVIDIA's: take another backend",
         lambda s, c, chip: c["backend"] != "cudnn" or chip is None or chip.can.backend == CUDA,
         ("bsp",), required=True),
    Rule("cuDNN's attention takes sequences of at least 2 tokens: take another backend",
         lambda s, c, chip: c["backend"] != "cudnn" or s.seq_len > 1, ("bsp",), required=True),
    Rule("torch's memory-efficient attention takes as many KV heads as query heads: take another "
         "backend",
         lambda s, c, chip: c["backend"] != "efficient" or s.group == 1, ("bsp",)),
    Rule("block_m must not exceed the tokens rounded up to a power of two, and 64 at least",
         lambda s, c, chip: c["block_m"] <= max(64, power_of_two_from(s.seq_len)), ("flash",)),
    Rule("block_n must not exceed the tokens rounded up to a power of two, and 32 at least",
         lambda s, c, chip: c["block_n"] <= max(32, power_of_two_from(s.seq_len)), ("flash",)),
    Rule("a swizzled mapping is for several dies: on one it is the naive one",
         lambda s, c, chip: chip is None or chip.several_dies or c["mapping"] not in SWIZZLED,
         ("flash",)),
    Rule("each warp must have rows of its own: num_warps times matrix_instr_nonkdim must be at "
         "most block_m",
         lambda s, c, chip: (chip is None
                             or c["num_warps"] * c["matrix_instr_nonkdim"] <= c["block_m"]),
         ("flash",)),
    Rule(f"a thread may hold at most {ACCUMULATORS} fp32 values of output and scores: take a "
         "smaller block or more warps",
         lambda s, c, chip: chip is None or _held(s, c, chip) <= ACCUMULATORS, ("flash",)),
    Rule("the pipeline's blocks must fit the chip's shared memory: take fewer tokens or stages",
         lambda s, c, chip: chip is None or _shared_bytes(s, c, chip) <= chip.shared_bytes,
         ("flash",)),
    # db/audits/mi300x8: nothing that keeps these two rules spills, on gfx942 or on gfx950.
    Rule(f"block_n, and the fp32 values that a thread holds, must be at most {CDNA_VALUES} "
         "together on CDNA, and half of it where two waves share a SIMD: it would spill",
         lambda s, c, chip: (chip is None or not chip.can.unified_registers
                             or _held(s, c, chip) + c["block_n"]
                             <= CDNA_VALUES // (2 if _two_waves(c) else 1)),
         ("flash",), learned=True),
    Rule("num_stages must be at most 3 on CDNA: a deeper pipeline is kept in registers, and spills",
         lambda s, c, chip: (chip is None or not chip.can.unified_registers
                             or c["num_stages"] <= 3), ("flash",), learned=True),
)  # fmt: skip


@lru_cache(maxsize=64)
def defaults(shape: FlashPrefill, chip: Chip | None = None) -> tuple[Config, ...]:
    """The library's backends that the chip has, its own pick first; then the kernel."""
    known = BACKENDS if chip is not None else BACKENDS[:1]
    forms = [Config("bsp", backend=backend) for backend in known]
    possible = (form for form in forms if SPACE.why_invalid(shape, form, chip) is None)
    return *possible, _flash(shape, chip)


def _flash(shape: FlashPrefill, chip: Chip | None) -> Config:
    """128 queries a program; on several dies each has heads of its own."""
    knobs: dict[str, Any] = {"block_m": min(128, max(64, power_of_two_from(shape.seq_len)))}
    knobs["block_n"] = min(64, max(32, power_of_two_from(shape.seq_len)))
    knobs["num_warps"] = 8 if knobs["block_m"] == 128 else 4
    if chip is not None and chip.several_dies:
        knobs["mapping"] = "swizzled_head_first"
    if chip is not None and chip.can.descriptors:
        knobs |= {"loads": "descriptor", "num_stages": 3}
    return Config("flash", **knobs)


SPACE = Space(
    op="flash_prefill",
    revisions={"bsp": 1, "flash": 1},
    variants={
        "bsp": (
            Choice(
                "backend", BACKENDS, "of torch's attention; auto: the one that it picks", "auto"
            ),
        ),
        "flash": _KNOBS,
    },
    rules=RULES,
    defaults=defaults,
)
