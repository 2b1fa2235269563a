"""Dumps the post-grad graphs in tests/graphs/, with the torch that runs it: `python
tests/dump_graphs.py`, one file for each plan and pass of autograd. Needs torch alone, no GPU.

A DTensor Llama block of two ranks of a fake process group: `sequence` is the plan with sequence
parallelism, whose collectives are gathers and reduce-scatters, `reduce` the plan with all-reduces.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.testing._internal.distributed.fake_pg import FakeStore

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, INNER, TOKENS = 64, 4, 2, 16, 96, 8
FOLDER = Path(__file__).parent / "graphs"
DUMPS = {
    "sequence": (1, "inference"),
    "sequence_batch2": (2, "inference"),
    "sequence_dynamic": (1, "dynamic"),
    "sequence_training": (1, "training"),
    "reduce": (1, "inference"),
}
"""Batch, and what is compiled."""


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wq = nn.Linear(HIDDEN, HEADS * HEAD_DIM, bias=False)
        self.wk = nn.Linear(HIDDEN, KV_HEADS * HEAD_DIM, bias=False)
        self.wv = nn.Linear(HIDDEN, KV_HEADS * HEAD_DIM, bias=False)
        self.wo = nn.Linear(HEADS * HEAD_DIM, HIDDEN, bias=False)

    def forward(self, x: Any) -> Any:
        q, k, v = (self._heads(layer(x)) for layer in (self.wq, self.wk, self.wv))
        out = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.wo(out.transpose(1, 2).reshape(x.shape[0], q.shape[2], -1))

    def _heads(self, x: Any) -> Any:
        return x.view(x.shape[0], x.shape[1], -1, HEAD_DIM).transpose(1, 2)


class FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w1 = nn.Linear(HIDDEN, INNER, bias=False)
        self.w2 = nn.Linear(INNER, HIDDEN, bias=False)
        self.w3 = nn.Linear(HIDDEN, INNER, bias=False)

    def forward(self, x: Any) -> Any:
        return self.w2(nn.functional.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, eps: float = 1e-6) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(HIDDEN, eps=eps)
        self.ffn_norm = nn.RMSNorm(HIDDEN, eps=eps)
        self.attention, self.ffn = Attention(), FeedForward()

    def forward(self, x: Any) -> Any:
        h = x + self.attention(self.attention_norm(x))
        return h + self.ffn(self.ffn_norm(h))


def plan(name: str) -> dict[str, Any]:
    """How a module is parallelised: with tokens sharded between the layers, or not."""
    columns = [f"attention.w{one}" for one in "qkv"] + ["ffn.w1", "ffn.w3"]
    rows = ["attention.wo", "ffn.w2"]
    if name == "reduce":
        return {
            **{one: ColwiseParallel() for one in columns},
            **dict.fromkeys(rows, RowwiseParallel()),
        }
    norms = {"attention_norm": SequenceParallel(), "ffn_norm": SequenceParallel()}
    columnwise = {one: ColwiseParallel(input_layouts=Shard(1)) for one in columns}
    return norms | columnwise | {one: RowwiseParallel(output_layouts=Shard(1)) for one in rows}


class Dump(CustomGraphPass):
    """Writes each graph that it is shown, and changes nothing."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, graph: torch.fx.Graph) -> None:
        names = [node.name for node in graph.nodes if node.op == "placeholder"]
        kind = "_backward" if any(one.startswith("tangents") for one in names) else ""
        version = "".join(torch.__version__.split(".")[:2])
        path = FOLDER / f"{self.name}{kind}_torch{version}.txt"
        path.write_text("\n".join(lines(graph)) + "\n")

    def uuid(self) -> None:
        return None


def lines(graph: torch.fx.Graph) -> Iterator[str]:
    """The graph as text: its inputs with dtype, sizes and strides, then its code. DTensor's meshes,
    which torch 2.13 passes as inputs that nothing reads, are left out."""
    yield f"# By tests/dump_graphs.py with torch {torch.__version__.partition('+')[0]}."
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    kept = [node for node in inputs if isinstance(node.meta["val"], torch.Tensor | torch.SymInt)]
    for node in kept:
        value = node.meta["val"]
        if isinstance(value, torch.SymInt):
            yield f"# {node.name} = {value}"
        else:
            dtype = str(value.dtype).removeprefix("torch.")
            yield f"# {node.name} = {dtype} {list(value.shape)} {list(value.stride())}"
    yield f"def forward(self, {', '.join(node.name for node in kept)}):"
    dropped = {node.name for node in inputs} - {node.name for node in kept}
    for line in graph.python_code("self").src.splitlines()[1:]:
        line = re.sub(r";  .* = None$", "", line)
        for name in dropped:
            line = re.sub(rf"\b{name}\b", "None", line)
        if line.strip() and not line.startswith("def "):
            yield line


def main() -> None:
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    for name, (batch, kind) in DUMPS.items():
        torch._dynamo.reset()
        module = parallelize_module(Block().half(), mesh, plan(name.partition("_")[0]))
        module.requires_grad_(kind == "training")
        x = torch.randn(batch, TOKENS, HIDDEN, dtype=torch.float16)
        if kind == "dynamic":
            torch._dynamo.mark_dynamic(x, 1)
        options = {"post_grad_custom_post_pass": Dump(name)}
        out = torch.compile(module, fullgraph=True, options=options)(x)
        if kind == "training":
            out.sum().backward()
        print(name, file=sys.stderr)


if __name__ == "__main__":
    main()
