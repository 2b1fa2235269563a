"""The calls of a model's layers on one rank of a tensor-parallel group. Standard library only.

Two plans. All-reduce: every rank has all tokens, and a sum over ranks ends attention and MLP.
Sequence parallel: each rank has its part of the tokens, which a gather and a GEMM begin and a GEMM
and a reduce-scatter end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_reduce import GRANULE, LONGEST_ROW, AllReduce
from tftune.kernels.core.shape import Shape
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter
from tftune.pipeline.model_config import ModelConfig

ALL_REDUCE, SEQUENCE = "all-reduce", "sequence-parallel"
PLANS = {"both": (ALL_REDUCE, SEQUENCE), ALL_REDUCE: (ALL_REDUCE,), SEQUENCE: (SEQUENCE,)}
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Sequences that one step of decoding gives a token each: sizes that engines capture."""
PREFILL = (1024, 2048, 4096)
"""Tokens of a prompt, or of the part of one that a step takes."""
JOINED, APART = "sequence-parallel, joined", "sequence-parallel, apart"
GEMM_SUM, SUM_NORM, SUM = "all-reduce with GEMM", "all-reduce with norm", "all-reduce alone"
WAYS = (GEMM_SUM, SUM_NORM, SUM, JOINED, APART)
"""Ways to run one step. Each is a choice: times of two ways are of other work, and do not add."""


@dataclass(frozen=True)
class Layer:
    """One call of a step: what it is, and how often a step makes it."""

    name: str
    ways: tuple[str, ...]
    """The ways to run a step that it belongs to."""
    shape: Shape
    calls: int

    @property
    def m(self) -> int:
        """Tokens of one call."""
        return int(self.shape.to_dict()["m"])


@dataclass(frozen=True)
class Model:
    """The layers of a model, and in sentences what is left out."""

    layers: tuple[Layer, ...]
    left_out: tuple[str, ...]

    @property
    def shapes(self) -> tuple[Shape, ...]:
        return tuple(dict.fromkeys(layer.shape for layer in self.layers))


@dataclass(frozen=True)
class _Linear:
    """One linear layer on one rank. Column-parallel: `n` columns of this rank, all of `k`;
    row-parallel: all of `n`, and `k` of all ranks."""

    name: str
    n: int
    k: int
    calls: int
    ways: tuple[str, ...]


def model_shapes(
    config: ModelConfig,
    tp: int,
    plan: str = "both",
    batches: Sequence[int] = BATCHES,
    prefill: Sequence[int] = PREFILL,
) -> Model:
    """Every call of a model at these batches and prompts. Raises ValueError for an unknown plan,
    and where nothing is left."""
    if plan not in PLANS:
        raise ValueError(f"--plan {plan!r} is not one of {', '.join(PLANS)}")
    if tp < 2:
        raise ValueError(f"--tp {tp}: ranks exchange nothing with fewer than 2; give --tp 2")
    rows = sorted({*batches, *prefill})
    made = _Made(config, tp, rows)
    layers = [layer for name in PLANS[plan] for layer in made.of_plan(name)]
    if not layers:
        raise ValueError(f"nothing of the model is left for --tp {tp}: {'; '.join(made.left_out)}")
    return Model(tuple(layers), tuple(dict.fromkeys(made.left_out)))


class _Made:
    """The layers as they are made, and the sentences for those that are not."""

    def __init__(self, config: ModelConfig, tp: int, rows: Sequence[int]) -> None:
        self.config, self.tp, self.rows = config, tp, rows
        self.left_out: list[str] = []
        if config.dense_layers < config.layers:
            self.left_out.append(
                f"{config.layers - config.dense_layers} of {config.layers} layers route tokens to "
                "experts: their GEMMs run as they do without tftune"
            )

    def of_plan(self, plan: str) -> Iterator[Layer]:
        yield from self._all_reduce() if plan == ALL_REDUCE else self._sequence()

    def _all_reduce(self) -> Iterator[Layer]:
        config, world, dtype = self.config, self.tp, self.config.dtype
        for each in self._row_parallel((GEMM_SUM,)):
            for m in self.rows:
                fused = GemmAllReduce(m, each.n, each.k, world, dtype)
                yield Layer(f"{each.name} + all-reduce", each.ways, fused, each.calls)
        if config.hidden % GRANULE:
            self.left_out.append(f"all-reduce: hidden_size={config.hidden} is no multiple of 8")
            return
        normed = config.normed and config.hidden <= LONGEST_ROW
        if not normed:
            self.left_out.append("all-reduce + norm: the model has no RMSNorm behind a residual")
        for norm, way in (("rms", SUM_NORM), ("none", SUM))[not normed :]:
            name = "all-reduce + norm" if norm == "rms" else "all-reduce"
            for m in self.rows:
                shape = AllReduce(m, config.hidden, world, dtype, norm)
                yield Layer(name, (way,), shape, 2 * config.layers)

    def _sequence(self) -> Iterator[Layer]:
        world, dtype = self.tp, self.config.dtype
        rows = [m for m in self.rows if m % world == 0]
        if odd := [str(m) for m in self.rows if m % world]:
            self.left_out.append(
                f"sequence-parallel at M={', '.join(odd)}: {world} ranks cannot share them evenly"
            )
        for each in self._column_parallel():
            for m in rows:
                column = AllGatherGemm(m, each.n, each.k, world, dtype, "m", "nk")
                yield Layer(f"gather + {each.name}", each.ways, column, each.calls)
        for each in self._row_parallel((JOINED, APART)):
            for m in rows:
                row = GemmReduceScatter(m, each.n, each.k, world, dtype)
                yield Layer(f"{each.name} + reduce-scatter", each.ways, row, each.calls)

    def _row_parallel(self, ways: tuple[str, ...]) -> Iterator[_Linear]:
        config = self.config
        if self._has_heads():
            yield _Linear("o_proj", config.hidden, config.attention_columns, config.layers, ways)
        if self._has_mlp():
            calls, k = config.dense_layers, config.intermediate
            yield _Linear("down_proj", config.hidden, k, calls, ways)

    def _column_parallel(self) -> Iterator[_Linear]:
        config, hidden = self.config, self.config.hidden
        if self._has_heads():
            yield from self._latent() if config.kv_rank else self._attention()
        if self._has_mlp():
            columns, calls = config.intermediate // self.tp, config.dense_layers
            if config.gated:
                yield _Linear("gate_up_proj", 2 * columns, hidden, calls, (JOINED,))
                yield _Linear("gate_proj, up_proj", columns, hidden, 2 * calls, (APART,))
            else:
                yield _Linear("up_proj", columns, hidden, calls, (JOINED, APART))

    def _attention(self) -> Iterator[_Linear]:
        config, hidden, calls = self.config, self.config.hidden, self.config.layers
        heads, kv_heads = config.heads // self.tp, max(config.kv_heads // self.tp, 1)
        q, kv = heads * config.head_dim, kv_heads * config.head_dim
        yield _Linear("qkv_proj", q + 2 * kv, hidden, calls, (JOINED,))
        yield _Linear("q_proj", q, hidden, calls, (APART,))
        yield _Linear("k_proj, v_proj", kv, hidden, 2 * calls, (APART,))

    def _latent(self) -> Iterator[_Linear]:
        """Linear layers of latent attention: the projections up from the latents, which are what is
        gathered."""
        config, calls, both = self.config, self.config.layers, (JOINED, APART)
        heads = config.heads // self.tp
        name, k = ("q_b_proj", config.q_rank) if config.q_rank else ("q_proj", config.hidden)
        yield _Linear(name, heads * config.qk_dim, k, calls, both)
        columns = heads * (config.qk_plain + config.v_dim)
        yield _Linear("kv_b_proj", columns, config.kv_rank, calls, both)

    def _has_heads(self) -> bool:
        heads, kv_heads = self.config.heads, self.config.kv_heads
        shared = self.config.kv_rank or kv_heads % self.tp == 0 or self.tp % kv_heads == 0
        if heads % self.tp == 0 and shared:
            return True
        return self._without(
            "attention", f"{heads} heads and {kv_heads} heads of keys and values", "split evenly"
        )

    def _has_mlp(self) -> bool:
        if not self.config.dense_layers:
            return False
        size = self.config.intermediate
        return size % self.tp == 0 or self._without(
            "the MLP", f"intermediate_size={size}", "divided"
        )

    def _without(self, what: str, sizes: str, how: str) -> bool:
        self.left_out.append(
            f"{what}: {sizes} cannot be {how} over {self.tp} ranks; its layers run BSP"
        )
        return False
