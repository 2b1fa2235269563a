"""A Llama block that DTensor made parallel: eager, compiled, and compiled with tftune's pass, which
replaces collectives around GEMMs. No layer is rewritten. benchmarks/llama.py times it.

torchrun --nproc-per-node 8 examples/llama_block.py
python examples/llama_block.py --cpu

Prefill is sequence parallel: a gather before the projections, a reduce-scatter behind them. Decode
adds up by all-reduces, for one token of each sequence. Weights are random.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from ranks import bind, relative_error, start
from torch import Tensor, nn
from torch.distributed.tensor import Replicate, Shard, init_device_mesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.functional import scaled_dot_product_attention, silu

import tftune

CONTEXT = 512
"""Tokens in the cache of each sequence that decodes, the new one included."""
LIMIT = 4 * 2.0**-8
"""A few roundings to bf16: each form rounds its sums in an order of its own."""


@dataclass(frozen=True)
class Size:
    """Sizes of one block (the model cards of Llama 3.1); `tiny` is for a CPU."""

    hidden: int
    heads: int
    kv_heads: int
    inner: int
    head_dim: int = 128


SIZES = {
    "8b": Size(4096, 32, 8, 14336),
    "70b": Size(8192, 64, 8, 28672),
    "tiny": Size(64, 4, 2, 96, head_dim=16),
}


@dataclass(frozen=True)
class Case:
    """`tokens` of one sequence (prefill), or of as many sequences (decode)."""

    plan: str
    tokens: int
    size: Size

    def __str__(self) -> str:
        return f"{self.plan} M={self.tokens}"

    @property
    def size_of_input(self) -> tuple[int, int, int]:
        """The size of the input of all ranks."""
        lead = (1, self.tokens) if self.plan == "prefill" else (self.tokens, 1)
        return (*lead, self.size.hidden)


class Attention(nn.Module):
    """Causal over [1, tokens, hidden]; or one token [sequences, 1, hidden] against a cache, of
    `kv_heads` of this rank."""

    def __init__(self, case: Case, kv_heads: int) -> None:
        super().__init__()
        size, self.head_dim = case.size, case.size.head_dim
        for name, heads in (("q", size.heads), ("k", size.kv_heads), ("v", size.kv_heads)):
            setattr(self, name, nn.Linear(size.hidden, heads * self.head_dim, bias=False))
        self.o = nn.Linear(size.heads * self.head_dim, size.hidden, bias=False)
        last = torch.tensor([CONTEXT - 1])
        positions = torch.arange(case.tokens) if case.plan == "prefill" else last
        rates = 500_000 ** -(torch.arange(0, self.head_dim, 2) / self.head_dim)
        angles = torch.outer(positions.float(), rates).repeat(1, 2)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        cached = (2, case.tokens, kv_heads, CONTEXT, self.head_dim)
        self.register_buffer("cache", torch.randn(cached) if case.plan == "decode" else None)

    def rotated(self, x: Tensor) -> Tensor:
        left, right = x.chunk(2, dim=-1)
        return x * self.cos + torch.cat((-right, left), dim=-1) * self.sin

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            project(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for project in (self.q, self.k, self.v)
        )
        q, k = self.rotated(q), self.rotated(k)
        if self.cache is not None:
            self.cache[0, :, :, -1:], self.cache[1, :, :, -1:] = k, v
            k, v = self.cache
        y = scaled_dot_product_attention(q, k, v, is_causal=self.cache is None, enable_gqa=True)
        return self.o(y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.gate, self.up = (nn.Linear(size.hidden, size.inner, bias=False) for _ in range(2))
        self.down = nn.Linear(size.inner, size.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, case: Case, kv_heads: int) -> None:
        super().__init__()
        self.attention_norm, self.ffn_norm = (
            nn.RMSNorm(case.size.hidden, eps=1e-5) for _ in range(2)
        )
        self.attention, self.ffn = Attention(case, kv_heads), FeedForward(case.size)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.ffn(self.ffn_norm(x))


def parallel(block: Block, plan: str, mesh: Any) -> Block:
    """The block with its weights sharded over the mesh, and the collectives of its plan."""
    columns, rows = ("attention.q", "attention.k", "attention.v", "ffn.gate", "ffn.up"), Replicate()
    layers: dict[str, Any] = {}
    if plan == "prefill":
        rows = Shard(1)
        layers |= {name: SequenceParallel() for name in ("attention_norm", "ffn_norm")}
        gather = {"input_layouts": (rows,), "desired_input_layouts": (Replicate(),)}
        layers |= {name: PrepareModuleInput(**gather) for name in ("attention", "ffn")}
    layers |= {name: ColwiseParallel() for name in columns}
    layers |= {name: RowwiseParallel(output_layouts=rows) for name in ("attention.o", "ffn.down")}
    return parallelize_module(block, mesh, layers)


def forms(
    case: Case, mesh: Any, found: Any, **options: Any
) -> tuple[Tensor, dict[str, Callable[[Tensor], Tensor]]]:
    """This rank's input, and the block as it can be called: the same weights in each form."""
    torch._dynamo.reset()  # each case is compiled on its own
    torch.manual_seed(0)  # the same on every rank
    with torch.device(options["device"]):
        whole = Block(case, case.size.kv_heads // mesh.size()).to(options["dtype"])
    block = parallel(whole, case.plan, mesh)
    x = torch.randn(case.size_of_input, **options)
    if case.plan == "prefill":
        x = x.chunk(mesh.size(), dim=1)[mesh.get_rank()].contiguous()
    # What inductor's cache answers no pass sees, and nothing could be reported of it.
    asked = {"post_grad_custom_post_pass": found, "fx_graph_cache": False}
    compiled = torch.compile(block, dynamic=False)
    passed = torch.compile(block, dynamic=False, options=asked)
    return x, {"eager": block, "compiled": compiled, "pass": passed}


def compared(calls: dict[str, Callable[[Tensor], Tensor]], x: Tensor) -> tuple[str, float]:
    """The errors of both compiled forms against the eager one, as text, and the larger one; raises
    where that is too large."""
    exact = calls["eager"](x).clone()
    one, two = (relative_error(calls[name](x), exact) for name in ("compiled", "pass"))
    if not max(one, two) < LIMIT:
        raise ValueError(f"errors are {one:.1e} and {two:.1e} but must be below {LIMIT:.1e}")
    return f"error {one:.1e} compiled, {two:.1e} with the pass", max(one, two)


@torch.no_grad()
def example(workspace: tftune.Workspace, artifact: str | None) -> str:
    emulated = workspace.arch == "interpreter"
    bind(workspace, artifact)
    pass_ = tftune.compile_pass(
        workspace.group, training=False, workspace=workspace, confirm=not emulated
    )
    options = {"device": workspace.device, "dtype": torch.float16 if emulated else torch.bfloat16}
    size, (tokens, sequences) = ("tiny", (8, 3)) if emulated else ("8b", (4096, 64))
    mesh = init_device_mesh(workspace.device.type, (workspace.world,))
    lines, worst = [pass_.why_idle] if pass_.why_idle else [], 0.0
    for case in (Case("prefill", tokens, SIZES[size]), Case("decode", sequences, SIZES[size])):
        before = len(pass_.report)
        x, calls = forms(case, mesh, pass_, **options)
        text, error = compared(calls, x)
        lines.append(f"{size} {case}: {text}")
        lines += [decided(entry) for entry in pass_.report[before:]]
        worst = max(worst, error)
    replaced = sum(entry.replaced for entry in pass_.report)
    kept = len(pass_.report) - replaced
    return "\n".join([*lines, f"RESULT compile_pass {replaced=} {kept=} max_error={worst:.1e}"])


def decided(entry: Any) -> str:
    """One collective, and what the pass did with it."""
    done = "replaced" if entry.replaced else "kept"
    return f"  {done:8} {entry.node:26} {entry.operation:19} {entry.shape}: {entry.reason}"


if __name__ == "__main__":
    start(example, payload_bytes=1 << 26)
