"""Rows for the layers of public models on this node, as many as the time suffices for.

usage: python benchmarks/rows.py --world 2 --db DB --out DIR [--seconds 500] [--mode graph|eager]
           [--models llama3-70b ...] [--ops all_reduce ...] [--decode 1 ...] [--prefill 1024 ...]
           [--share 1.0] [--seed 1] [--on node|model] [--target h200x2] [--show]

One world of ranks measures the shapes of all models in a random order, so that what a short run
leaves out is spread over operations, models and sizes. The same command goes on where the last one
ended: DB has the rows, DIR the artifacts of all of them. --models, --ops, --decode and --prefill:
some models, some operations, some M of each kind. --share: the part of the shapes that is asked
for. --show: count the shapes of each operation, and measure nothing.

RESULT rows target=.. mode=.. asked=.. measured=.. faster=.. geomean=..
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import launch

from tftune.cli.console import Progress, note
from tftune.cli.options import open_store
from tftune.db.evidence import BSP
from tftune.db.store import Store
from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.core.registry import OPS, operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.merge_attention import MergeAttention
from tftune.models.timeline.simulator import predict
from tftune.pipeline.artifacts import write_artifacts
from tftune.pipeline.bench_factory import find_target
from tftune.pipeline.model_config import config_of
from tftune.pipeline.model_shapes import Layer, Model, model_shapes
from tftune.pipeline.places import Stake
from tftune.pipeline.tune_model import Job, measured
from tftune.tuner.bench.benches import Bench, ModelBench
from tftune.tuner.search.session import Rows

SIZES = (
    "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size",
)  # fmt: skip
DENSE = {
    "llama3-8b": (4096, 32, 8, 128, 14336),
    "llama3-70b": (8192, 64, 8, 128, 28672),
    "llama3-405b": (16384, 128, 8, 128, 53248),
    "qwen2.5-7b": (3584, 28, 4, 128, 18944),
    "qwen2.5-32b": (5120, 40, 8, 128, 27648),
    "qwen2.5-72b": (8192, 64, 8, 128, 29568),
    "mistral-7b": (4096, 32, 8, 128, 14336),
    "mistral-small-24b": (5120, 32, 8, 128, 32768),
}
ROUTED = {
    "deepseek-v3": {
        "model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168,
        "num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 18432,
        "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
        "v_head_dim": 128, "n_routed_experts": 256, "first_k_dense_replace": 3,
    },
    "gpt-oss-120b": {
        "model_type": "gpt_oss", "num_hidden_layers": 36, "hidden_size": 2880,
        "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
        "intermediate_size": 2880, "num_local_experts": 128,
    },
}  # fmt: skip
COMMON = {"torch_dtype": "bfloat16", "rms_norm_eps": 1e-5}
ONE_LAYER: dict[str, Any] = {"model_type": "llama", "num_hidden_layers": 1}
MODELS = {name: COMMON | fields for name, fields in ROUTED.items()} | {
    name: COMMON | ONE_LAYER | dict(zip(SIZES, sizes, strict=True)) for name, sizes in DENSE.items()
}
"""Fields of each publisher's config.json. Experts' GEMMs are no operation of ours."""
DECODE = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
PREFILL = (512, 1000, 1024, 2048, 3000, 4096, 8192)
PAYLOADS = tuple(1 << power for power in range(12, 27))
"""Bytes of an `all_reduce`: 4 KB to 64 MB."""
BATCHES, CONTEXTS, PAGES = (1, 4, 16, 64), (1024, 4096, 16384), (16, 64)


def layers(
    world: int,
    models: Iterable[str] = MODELS,
    prefill: Sequence[int] = PREFILL,
    decode: Sequence[int] = DECODE,
) -> Iterator[Shape]:
    """Every shape, some of them more than once."""
    for name in models:
        config = config_of(MODELS[name], name)
        for layer in model_shapes(config, world, "both", decode, prefill).layers:
            yield layer.shape
        if not config.kv_rank and config.heads % world == 0:
            yield from attention(config.heads, config.kv_heads, config.head_dim, world)
    for size in PAYLOADS:
        columns = min(8192, size // 2)
        yield AllReduce(size // 2 // columns, columns, world, "bf16", "none")


def attention(heads: int, kv_heads: int, head_dim: int, world: int) -> Iterator[Shape]:
    """Steps of decoding over a cache that is shared by context, each rank with its own heads of the
    result; and the merge alone."""
    for batch in BATCHES:
        for context in CONTEXTS:
            for page in PAGES:
                sizes = batch, heads, kv_heads, head_dim, context
                yield FlashDecode(*sizes, world, "bf16", "heads", page)
        yield MergeAttention(batch, heads, head_dim, world)


@dataclass(frozen=True)
class Shuffled(Job):
    """A job whose shapes are measured in a random order."""

    seed: int = 1

    @property
    def stakes(self) -> list[Stake]:
        shuffled = [Stake((shape, mode), 1.0) for shape in self.model.shapes for mode in self.modes]
        random.Random(self.seed).shuffle(shuffled)
        return shuffled


def result(job: Shuffled, store: Store) -> str:
    """What there is now of what was asked."""
    from tftune.tuner.bench.node import NodeBench

    with ExitStack() as stack:
        bench: Bench = ModelBench(job.target, predict)
        if job.on == "node":
            bench = stack.enter_context(closing(NodeBench(job.target, 1)))
        rows = {op: Rows(operation(op), bench, store) for op in job.ops}
    gains = []
    for stake in job.stakes:
        ratios = rows[stake.shape.op].ratios(stake.place)
        fused = [ratio for config, ratio in ratios.items() if config.variant != BSP]
        if fused:
            gains.append(1 / min(1.0, *fused))
    faster = sum(gain > 1.01 for gain in gains)
    geomean = geometric_mean(gains or [1.0])
    return (
        f"RESULT rows target={job.target} mode={','.join(job.modes)} asked={len(job.stakes)} "
        f"measured={len(gains)} faster={faster} geomean={geomean:.3f}"
    )


def main() -> int:
    parser = launch.parser(__doc__)
    parser.add_argument("--world", type=int, required=True)
    parser.add_argument("--db", type=Path, default=Path("rows.db"))
    parser.add_argument("--out", type=Path, default=Path("tftune-artifacts"))
    parser.add_argument("--seconds", type=float, default=500.0, help="for measuring")
    parser.add_argument("--mode", choices=("graph", "eager"), default="graph")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=tuple(MODELS))
    parser.add_argument("--ops", nargs="+", choices=OPS, default=OPS)
    parser.add_argument("--decode", type=int, nargs="*", default=DECODE)
    parser.add_argument("--prefill", type=int, nargs="*", default=PREFILL)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--on", choices=("node", "model"), default="node")
    parser.add_argument("--target", help="with --on model: the machine, such as h200x2")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    drawn = layers(options.world, options.models, options.prefill, options.decode)
    shapes = [shape for shape in dict.fromkeys(drawn) if shape.op in options.ops]
    random.Random(options.seed).shuffle(shapes)
    shapes = shapes[: max(1, round(options.share * len(shapes)))]
    print(f"{len(shapes)} shapes: {dict(sorted(Counter(shape.op for shape in shapes).items()))}")
    if options.show:
        return 0
    target = find_target(options.on, options.target, None, options.db)
    model = Model(tuple(Layer(str(shape), (), shape, 1) for shape in shapes), ())
    job = Shuffled(model, (options.mode,), options.on, target, options.seconds, options.out,
                   options.seed)  # fmt: skip
    progress = Progress(options.seconds)
    progress.start(None)
    began = time.monotonic()
    with open_store(options.db, write=True) as store:
        try:
            measured(job, store, progress.advance, progress.doing)
        finally:
            progress.finish()
        note(f"{time.monotonic() - began:.0f} s of measuring")
        for path in write_artifacts(store, job.ops, target, options.on, options.out):
            print(f"artifact: {path}")
        print(result(job, store))
    return 0


if __name__ == "__main__":
    sys.exit(main())
