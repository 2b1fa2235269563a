"""Where the time of a fused flash_decode goes, by leaving stages out: nothing but a launch, the
cache read, the splits added up, everything without waiting, and the same with no token to read.

usage: python benchmarks/decode_stages.py batch=1,q_heads=64,kv_heads=8,head_dim=128,kv_len=8192,\
world=8 [--db node.db] [--variant persistent_ll]

All arms have the knobs of one config and take turns in the same rounds, in a CUDA graph, caches
cold. Arms that compute the whole result are checked before they are timed. `alone` runs on one GPU
of its own world; its rounds are others. The config is the winner of --db, else the variant's
default. `stages.py` does the same for operations with a GEMM.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import stages
from node import NO_MULTICAST

from tftune.db import target as machine
from tftune.db.target import Target
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode.space import SPACE
from tftune.tuner.bench import worker
from tftune.tuner.bench.sandbox import Broken, RankError

STAGES = {
    "launch": "one kernel that returns at once",
    "read": "the cache attended to, nothing added up or sent",
    "local": "the same, and the splits added up: nothing sent",
    "no_waiting": "all kernels of `fused`; who merges does not wait for peers",
}
"""Kernels of a call, chosen by constexpr. No variants of the space; their results are not whole."""
WHOLE = {
    "bsp": "the library's collective between the same local kernels",
    "fused": "three kernels, one flag of a source",
    "persistent": "one kernel, flags",
    "persistent_ll": "one kernel, words that carry their epoch (LL)",
}
EMPTY = " empty"
"""Behind the name of an arm whose sequences have no token: all of its work but reading."""
ALONE = " alone"
"""Behind the name of the config on one GPU: no exchange and no waiting."""


def meaning(arm: str) -> str:
    """What an arm is, in a line of the table."""
    if arm.endswith(EMPTY):
        return f"{arm.removesuffix(EMPTY)} with no token to read"
    if arm.endswith(ALONE):
        return f"{arm.removesuffix(ALONE)} on one GPU: no exchange, rounds of its own"
    return (STAGES | WHOLE)[arm]


class DecodeRank(worker.Rank):
    """A rank of a search that also takes STAGES and arms without tokens for configs."""

    def prepare(self, shape: Any, config: Config, fault: str | None = None) -> None:
        if config.variant in SPACE.variants:
            return super().prepare(shape, config, fault)
        self._use(shape)
        self.workspace.plans[shape, config] = stage(shape, config, self.workspace)


def stage(shape: FlashDecode, config: Config, workspace: Any) -> Callable[..., None]:
    """The call of an arm that is no variant. Raises ValueError for a name that is none, and where
    the knobs break a rule of `fused`, or of the variant that has no tokens."""
    from tftune.kernels.flash_decode.host import prepare, prepare_stages
    from tftune.kernels.flash_decode.variants.fused import fused
    from tftune.kernels.flash_decode.variants.launches import Launch, local, merge

    if config.variant.endswith(EMPTY):
        whole = named(config, config.variant.removesuffix(EMPTY))
        return without_tokens(prepare(shape, whole, workspace))
    if config.variant == "launch":
        return launch_alone(workspace)
    if config.variant not in STAGES:
        raise ValueError(f"there is no stage {config.variant!r}; there are {', '.join(STAGES)}")
    knobs = named(config, "fused")
    splits = int(SPACE.complete(knobs)["kv_splits"])
    kernels = {
        "read": local(splits)[:1],
        "local": local(splits),
        "no_waiting": (*fused(splits)[:-1], Launch(merge, {"INBOX": True, "WAIT": False})),
    }
    return prepare_stages(shape, knobs, workspace, kernels[config.variant])


def named(config: Config, name: str) -> Config:
    """The same knobs under another name."""
    return Config(name, **dict(config.knobs))


def without_tokens(plan: Callable[..., None]) -> Callable[..., None]:
    """The same call on sequences of length 0."""
    lengths: list[Any] = []

    def call(q: Any, k: Any, v: Any, given: Any, table: Any, out: Any) -> None:
        if not lengths:
            lengths.append(given.new_zeros(given.shape))
        plan(q, k, v, lengths[0], table, out)

    return call


def launch_alone(workspace: Any) -> Callable[..., None]:
    """A call that launches one program: torch's addition to a single word."""
    import torch

    word = torch.zeros(1, dtype=torch.int32, device=workspace.device)

    def call(*operands: Any) -> None:
        word.add_(1)

    return call


def serve(connection: Connection, spec: worker.WorldSpec, rank: int) -> None:
    worker.main(connection, spec, rank, make=DecodeRank)


def arms(shape: FlashDecode, config: Config, chip: Any) -> dict[str, Config | str]:
    """Every arm with the knobs of this config that it has, or the rule for which there is none."""
    found: dict[str, Config | str] = {name: _with_knobs(config, "fused", name) for name in STAGES}
    for variant in WHOLE:
        whole = config if variant == config.variant else _with_knobs(config, variant, variant)
        why = SPACE.why_invalid(shape, whole, chip)
        found[variant] = why or whole
        if variant.startswith("persistent"):
            found[variant + EMPTY] = why or named(whole, variant + EMPTY)
    why = SPACE.why_invalid(shape, _with_knobs(config, "fused", "fused"), chip)
    return found if why is None else found | dict.fromkeys(STAGES, why)


def _with_knobs(config: Config, variant: str, name: str) -> Config:
    """The knobs of a config that this variant has, under this name; a flag for each piece where the
    config has no flags."""
    complete = dict(SPACE.complete(config).knobs)
    complete.setdefault("heads_per_flag", complete["heads_per_program"])
    own = [choice.name for choice in SPACE.choices(variant) if choice.name in complete]
    return Config(name, **{knob: complete[knob] for knob in own})


def measured(
    shape: FlashDecode,
    config: Config,
    target: Target,
    emulated: bool = False,
    rounds: int = stages.ROUNDS,
) -> dict[str, float | str]:
    """Microseconds of each arm, or the sentence for which one has none."""
    chip = None if emulated else target.chip
    asked = arms(shape, config, chip)
    timed = {name: arm for name, arm in asked.items() if isinstance(arm, Config)}
    us = stages.times(shape, list(timed.values()), target, emulated, rounds, serve)
    us_of = dict(zip(timed, us, strict=True))
    found: dict[str, float | str] = {name: us_of.get(name, str(arm)) for name, arm in asked.items()}
    own, name = replace(shape, world=1), config.variant + ALONE
    why = SPACE.why_invalid(own, config, chip)
    if why is not None:
        return found | {name: why}
    return found | {name: stages.times(own, [config], target, emulated, rounds, serve)[0]}


def report(shape: FlashDecode, config: Config, where: str, found: dict[str, float | str]) -> str:
    """A table in Markdown, and a RESULT line with the arms that have a time."""
    rows = [
        f"| {arm} | {us if isinstance(us, str) else f'{us:.1f}'} | {meaning(arm)} |"
        for arm, us in found.items()
    ]
    times = " ".join(
        f"{arm.replace(' ', '_')}_us={us:.1f}" for arm, us in found.items() if isinstance(us, float)
    )
    sizes = str(shape).replace(",", " ")
    return "\n".join(
        [
            f"{shape} on {where}, graph: {config}",
            "| arm | us | what it is |",
            "|---|---|---|",
            *rows,
            f"RESULT stages op=flash_decode target={where} {sizes} {times}",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shape", metavar="SHAPE", help=f"as in {FlashDecode.example()}")
    parser.add_argument("--db", type=Path, help="database with final rows of this machine")
    parser.add_argument("--variant", help="its default config, without --db")
    parser.add_argument("--emulated", action="store_true", help="ranks without GPUs: no speed")
    options = parser.parse_args(arguments)
    os.environ.update(NO_MULTICAST)  # the ranks inherit it
    try:
        shape = FlashDecode.parse(options.shape)
        here = Target.parse(f"h200x{shape.world}") if options.emulated else machine.detect()
        where = f"emulated-{here}" if options.emulated else here.name
        config = stages.chosen(shape, here, options.db, options.variant)
        rounds = 3 if options.emulated else stages.ROUNDS
        began = time.monotonic()
        found = measured(shape, config, here, options.emulated, rounds)
        print(report(shape, config, where, found))
        print(f"took {time.monotonic() - began:.0f} s", file=sys.stderr)
    except (ValueError, OSError, Broken, RankError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
