"""Is a rank's knowledge of its lengths worth gathering? Regret of the trees K and G, and the total
time with the gate D, on distributions and shapes that they did not see.

    python benchmarks/gate.py                          # 8x H200, modelled
    python benchmarks/gate.py --target mi300x8
    python benchmarks/gate.py --gather-us 5 --seeds 4

Trees learn of the set `models` (`flash_decode/workloads.py`) and are judged on shapes that are
drawn at random, under a distribution that is held out, too. Times are the analytic model's: nothing
here is measured. The config that answers for a shape is the fastest of full caches among
some that are drawn at random, and the defaults. `tftune facts` does the same with rows of a node.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence

from tftune.db.target import Target
from tftune.kernels.core.chips import Chip
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode.space import SPACE
from tftune.kernels.flash_decode.workloads import SHAPE_SETS
from tftune.models.facts import GATHER_US, FactsModel, rules
from tftune.models.facts_fit import JUDGED, Case, case, fitted, regret, totals
from tftune.models.timeline.simulator import predict

NAMES = ("full", "uniform", "zipf", "one_long", "chat")
POOL = 150
"""Configs drawn for each shape, beside the defaults."""
DRAWN, MOST_BYTES = 60, 2 << 30
"""Shapes that trees are judged on, and bytes of the cache of one of them at most."""


def drawn(world: int, seed: int = 20261124) -> list[FlashDecode]:
    """Any shapes that engines may ask for in bf16, pages of 16 tokens, each rank's own heads."""
    source, found = random.Random(seed), dict[FlashDecode, None]()
    while len(found) < DRAWN:
        kv_heads = source.choice((1, 2, 4, 8)) * world
        shape = FlashDecode(
            batch=round(2 ** source.uniform(0, 8)),
            q_heads=kv_heads * source.randint(1, 16),
            kv_heads=kv_heads,
            head_dim=source.choice((64, 128, 256)),
            kv_len=16 * round(2 ** source.uniform(2, 11)),
            world=world,
            dtype="bf16",
            output="heads",
            page_size=16,
        )
        if shape.cache_bytes <= MOST_BYTES:
            found[shape] = None
    return list(found)


def cases(shapes: Sequence[FlashDecode], chip: Chip, texts: Sequence[str]) -> Iterator[Case]:
    """Of every shape and distribution, modelled."""
    source = random.Random(0)
    for shape in shapes:
        config = _answering(shape, chip, source)
        for text in texts:

            def time_us(asked: Config, shape: FlashDecode = shape, text: str = text) -> float:
                return predict(shape, asked, "graph", chip, text)

            if found := case(shape, text, config, chip, time_us):
                yield found


def _answering(shape: FlashDecode, chip: Chip, source: random.Random) -> Config:
    every = list(SPACE.configs(shape, chip))
    tried = [*SPACE.defaults(shape, chip), *source.sample(every, min(POOL, len(every)))]
    return min(tried, key=lambda config: predict(shape, config, "graph", chip))


def distributions(first_seed: int, seeds: int) -> list[str]:
    """Every name with so many seeds; full ones have none."""
    return [
        name if name == "full" else f"{name}/{seed}"
        for name in NAMES
        for seed in (range(first_seed, first_seed + seeds) if name != "full" else (0,))
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    target = Target.parse(options.target)
    chip, world = target.chip, target.gpus
    seen = list(cases(SHAPE_SETS["models"](world=world), chip, distributions(1, options.seeds)))
    held = list(cases(drawn(world), chip, distributions(101, options.seeds)))
    print(f"{target}, modelled: learned of {len(seen)} cases, judged on {len(held)} others")
    whole = FactsModel(**fitted(seen, options.gather_us), measured=False)
    print("\n".join(rules(whole)))
    print("| cases | as it is | K | G | best of 4 forms |\n|---|---|---|---|---|")
    for name, some in (("learned of", seen), ("held out", held)):
        lost = regret(whole, some)
        print(f"| {name} |" + "|".join(f" {lost[word]:.3f} " for word in lost) + "|")
    won = _table(seen, held, options.gather_us)
    print(
        f"RESULT gate target={target} gather_us={options.gather_us:g} cases={len(held)} "
        f"wins={len(won)} distributions={len({name for name, _ in won})}"
    )
    return 0


def _table(seen: list[Case], held: list[Case], gather_us: float) -> list[tuple[str, int]]:
    """Where the gate takes strictly less time than both always and never gathering."""
    head = "held out", "reuse", "as it is", "never", "always", "by the gate", "best", "gathered"
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    won = []
    for name in NAMES:
        fields = fitted([each for each in seen if each.distribution != name], gather_us)
        mine = [each for each in held if each.distribution == name]
        for reuse in JUDGED:
            found = totals([(fields, mine)], gather_us, reuse)
            means = found.as_it_is, found.never, found.always, found.gated, found.best
            cells = [f"{us / found.cases:.2f}" for us in means]
            won += [(name, reuse)] if found.wins else []
            cells[3] += " *" * found.wins
            gathered = f"{found.gathered} of {found.cases}"
            print("| " + " | ".join([name, str(reuse), *cells, gathered]) + " |")
    print("us a call, mean; * below both always and never gathering")
    return won


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--target", default="h200x8", help="machine, default h200x8")
    parser.add_argument(
        "--gather-us", type=float, default=GATHER_US, help=f"cost, default {GATHER_US:g} us"
    )
    parser.add_argument("--seeds", type=int, default=3, help="draws of each distribution")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
