"""What may vary."""

from __future__ import annotations

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.space import FLAGS_PER_SOURCE, Choice, Config, Rule, Space

from . import AllSum


def blocks(shape: AllSum, config: Config) -> int:
    return -(-shape.elements // int(config["block"]))


def defaults(shape: AllSum, chip: Chip | None) -> tuple[Config, ...]:
    units = chip.units if chip else 16
    fitting = (block for block in BLOCK.values if -(-shape.elements // int(block)) <= units)
    block = next(fitting, None)
    return (Config("bsp"), *([] if block is None else [Config("push", block=block)]))


BLOCK = Choice("block", (128, 256, 1024, 4096, 8192), "elements that one program sums", 1024)
SPACE = Space(
    op="all_sum",
    variants={"bsp": (), "push": (BLOCK, Choice("num_warps", (4, 8), "warps of one program", 4))},
    rules=(
        Rule(
            "every block has a flag of its own",
            lambda shape, config, chip: blocks(shape, config) <= FLAGS_PER_SOURCE,
            ("push",),
        ),
        Rule(
            "all programs are resident at once",
            lambda shape, config, chip: chip is None or blocks(shape, config) <= chip.units,
            ("push",),
        ),
    ),
    defaults=defaults,
    revisions={"bsp": 1, "push": 1},
)
