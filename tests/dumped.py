"""Graphs of tests/graphs/ rebuilt: the same nodes, with fake values, ready for a pass and for real
tensors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule, symbolic_trace
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv
from torch.fx.node import map_arg

FOLDER = Path(__file__).parent / "graphs"
EPS, LLAMA_EPS = "9.999999974752427e-07", "9.999999747378752e-06"
"""1e-6 of the dumps and 1e-5, rounded to fp32, as torch writes them."""
TRACED_TOKENS = 8
"""What a symbol stood for when the graphs were dumped."""


def names() -> list[str]:
    """The names of all dumps: plan, pass of autograd, and torch's version."""
    return sorted(path.stem for path in FOLDER.glob("*.txt"))


def text(name: str) -> str:
    return (FOLDER / f"{name}.txt").read_text()


def with_eps(name: str, eps: str) -> str:
    """A dump whose norms have another epsilon. `dump_graphs.Block(eps=1e-5)` gives the same text in
    torch 2.13."""
    source = text(name)
    assert source.count(EPS) == 2
    return source.replace(EPS, eps)


def rebuilt(source: str) -> GraphModule:
    """The graph of a dump's text."""
    scope: dict[str, Any] = {"torch": torch, "device": torch.device, "inf": float("inf")}
    exec(source, scope)
    module = type("Dumped", (torch.nn.Module,), {"forward": scope["forward"]})()
    return with_values(symbolic_trace(module), inputs(source))


def inputs(source: str) -> dict[str, Any]:
    """Fake inputs by name: tensors, and symbolic integers where the text names a symbol."""
    shape_env = ShapeEnv()
    mode = FakeTensorMode(shape_env=shape_env, allow_non_fake_inputs=True)
    symbols: dict[str, Any] = {}
    for symbol in sorted(set(re.findall(r"\bs\d+\b", source))):
        origin = ConstantSource(symbol)
        made = shape_env.create_symbol(TRACED_TOKENS, origin, DimDynamic.DYNAMIC)
        symbols[symbol] = shape_env.create_symintnode(made, hint=TRACED_TOKENS, source=origin)
    found: dict[str, Any] = {}
    for name, described in re.findall(r"^# (\w+) = (.+)$", source, re.MULTILINE):
        if described in symbols:
            found[name] = symbols[described]
            continue
        dtype, sizes, strides = re.fullmatch(r"(\w+) (\[.*?\]) (\[.*?\])", described).groups()
        with mode:
            found[name] = torch.empty_strided(
                eval(sizes, dict(symbols)), eval(strides, dict(symbols)),
                dtype=getattr(torch, dtype),
            )  # fmt: skip
    return found


def with_values(module: GraphModule, values: dict[str, Any]) -> GraphModule:
    """The module with a fake value in each node, as after inductor's own passes."""
    mode = next(v.fake_mode for v in values.values() if isinstance(v, torch.Tensor))
    for node in module.graph.nodes:
        if node.op == "placeholder":
            node.meta["val"] = values[node.name]
        elif node.op == "get_attr":
            node.meta["val"] = mode.from_tensor(getattr(module, node.target))
        elif node.op == "call_function":
            arguments = map_arg((node.args, node.kwargs), lambda one: one.meta["val"])
            with mode:
                node.meta["val"] = node.target(*arguments[0], **arguments[1])
    return module


def random_inputs(module: GraphModule, rank: int, tokens: int = TRACED_TOKENS) -> list[Any]:
    """Real inputs of this rank: normal for activations and weights, small enough for fp16; the
    first is the activation, norms' weights are the same on every rank."""
    own, shared = (torch.Generator().manual_seed(seed) for seed in (1 + rank, 0))
    found: list[Any] = []
    for node in module.graph.nodes:
        if node.op != "placeholder":
            continue
        value = node.meta["val"]
        if isinstance(value, torch.SymInt):
            found.append(tokens)
            continue
        sizes = [size if isinstance(size, int) else _at(size, tokens) for size in value.shape]
        generator = own if len(sizes) > 1 else shared
        scale = 0.1 if len(sizes) == 2 else 1.0
        found.append((scale * torch.randn(sizes, generator=generator)).to(value.dtype))
    return found


def _at(size: Any, tokens: int) -> int:
    """A symbolic size for so many tokens."""
    expression = size.node.expr
    return int(expression.subs(dict.fromkeys(expression.free_symbols, tokens)))
