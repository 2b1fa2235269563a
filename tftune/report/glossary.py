"""What the words of a report's page mean: its own, and the operation's from where they are
declared. Standard library only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from html import escape
from importlib.util import find_spec
from pathlib import Path

from tftune.kernels.core.registry import Operation
from tftune.report.tables import label

MODES_MEAN = {
    "graph": "calls are captured in a CUDA or HIP graph and replayed, as most servers run them",
    "eager": "the host launches each call",
}
BENCHES_MEAN = {
    "node": "timed on GPUs: the slowest rank's time for one call, median of all rounds",
    "model": "predicted by the analytic model; no GPU was used",
    "replay": "answered from rows of the past",
    "drill": "timed on GPUs while faults were injected on purpose",
}
WORDS = {
    "speed-up": "BSP's time divided by the config's; above 1 the config is faster",
    "BSP": "bulk-synchronous: the library's collective, then a compute kernel, in the fastest of "
    "its forms; what every other variant is compared with",
    "fused": "communication inside the compute kernel; variants other than BSP and bsp_chunked",
    "variant": "one strategy of the operation, listed below",
    "config": "a variant and its knobs; knobs that are not named have their default",
    "rank": "one GPU with its process",
    "layout": "data type, sharding, storage order and number of ranks together; rows of one layout "
    "say nothing of another",
    "configs tried": "distinct configs of the search, failed ones included",
    "paper": "“Eliminating Multi-GPU Performance Taxes” (arXiv 2511.02168); its shapes are the set "
    "paper",
    "µs": "microseconds",
}
INTERVAL = {
    "95 % interval": "of the median speed-up over the rounds that the config and BSP share; it "
    "comes from order statistics",
    "tie": "the interval of the speed-up begins below 1.01: noise or another run may explain it; "
    "BSP is kept",
}
TREES = {
    "tree": "what the selector asks about a shape; it answers for shapes that have no row",
    "leaf": "where a path through the tree ends: configs whose time formulas then decide",
}


def terms(
    op: Operation,
    *,
    benches: Mapping[str, str],
    modes: Iterable[str],
    variants: Iterable[str],
    knobs: Iterable[str],
    features: Iterable[str],
    with_intervals: bool,
) -> list[tuple[str, Mapping[str, str]]]:
    """The words by topic, of those that a page uses. `benches`: the word of each bench shown."""
    features, named = list(features), set(knobs)
    choices = {
        choice.name: choice.meaning
        for variant in variants
        for choice in op.space.variants.get(variant, ())
        if choice.name in named
    }
    described = op.module("features").FEATURES if features else {}
    return [
        ("Words", {
            **{word: BENCHES_MEAN[bench] for bench, word in benches.items()},
            **WORDS, **(INTERVAL if with_intervals else {}),
            **{f"mode {mode}": MODES_MEAN[mode] for mode in modes},
            **(TREES if features else {}),
        }),
        ("Variants", variant_meanings(op, variants)),
        ("Knobs", choices),
        ("Features of the trees", {name: described[name][0] for name in features}),
    ]  # fmt: skip


def variant_meanings(op: Operation, variants: Iterable[str]) -> dict[str, str]:
    """The first sentence of each variant's file, which is read and not imported: that would ask for
    Triton. Without those that have no file of their own."""
    meanings = {}
    for variant in variants:
        spec = find_spec(f"{op.package}.variants") and find_spec(f"{op.package}.variants.{variant}")
        if spec and spec.origin:
            doc = ast.get_docstring(ast.parse(Path(spec.origin).read_text("utf-8"))) or ""
            first = " ".join(doc.split("\n\n")[0].split())
            meanings[label(variant)] = first.removeprefix(f"{variant}: ").rstrip(".")
    return meanings


def calls(op: Operation) -> list[str]:
    """What one call computes and what the fields of its shape mean: the operation's docstrings
    without errors and examples."""
    from importlib import import_module

    module = (import_module(op.package).__doc__ or "").split("\n\n")[0]
    shape = re.split(r"Raises |>>>", op.shape.__doc__ or "")[0]
    return [" ".join(part.split()) for part in (module, *shape.split("\n\n")) if part.strip()]


def prose(text: str) -> str:
    """Text of a docstring as HTML: what stands between backticks is code.

    >>> prose("`m` tokens & more")
    '<code>m</code> tokens &amp; more'
    """
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


def definitions(words: Mapping[str, str]) -> str:
    """Words and what they mean as a list of a page."""
    entries = (f"<dt>{escape(word)}</dt><dd>{prose(text)}.</dd>" for word, text in words.items())
    return f"<dl>{''.join(entries)}</dl>\n"
