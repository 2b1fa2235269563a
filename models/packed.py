"""A tree as plain data, and back: each config and each reason is written once, and leaves name them by number. Standard library only.

A split is [feature, threshold, below, above], a leaf [config, BSP form, other config or null, rows, worst regret, least speed-up or null,
reason]: 200 leaves with the names of their fields would be half of an artifact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tftune.kernels.space import Config
from tftune.models.tree import Leaf, Node, Split, Tree, own_leaf

LOW = "{low}"
"""Stands in a reason for the lower bound of the leaf's speed-up."""
DEEPEST = 64
"""Splits on the way to a leaf at most: each is one level of indentation in `plain`, of which CPython's tokenizer takes 100. Trained trees
have 12 at most."""


class _Table:
    """What leaves name by number: configs, each with the hash of its kernel's source, and reasons."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        named = {(leaf.config, leaf.kernel_hash) for leaf in leaves}
        known = {config for config, _ in named}
        named |= {(config, "") for leaf in leaves for config in (leaf.bsp, leaf.otherwise) if config is not None and config not in known}
        groups: dict[tuple[str, str, tuple[str, ...]], list[Config]] = {}
        for config, kernel in sorted(named):
            groups.setdefault((config.variant, kernel, tuple(name for name, _ in config.knobs)), []).append(config)
        self.groups = groups
        pairs = [(config, kernel) for (_, kernel, _), configs in groups.items() for config in configs]
        self.numbers = {pair: number for number, pair in enumerate(pairs)}
        self.any_kernel = {config: number for (config, _), number in reversed(self.numbers.items())}
        self.reasons = list(dict.fromkeys(map(_template, leaves)))

    def to_list(self) -> list[dict[str, Any]]:
        return [
            {"variant": variant, "kernel": kernel, "knobs": list(knobs), "values": [[config[name] for name in knobs] for config in configs]}
            for (variant, kernel, knobs), configs in self.groups.items()
        ]

    def leaf(self, leaf: Leaf) -> list[Any]:
        other = None if leaf.otherwise is None else self.any_kernel[leaf.otherwise]
        numbers = leaf.rows, leaf.worst_regret, leaf.speedup_low
        return [*self.names(leaf), other, *numbers, self.reasons.index(_template(leaf))]

    def names(self, leaf: Leaf) -> tuple[int, int]:
        """The config and the BSP form."""
        return self.numbers[leaf.config, leaf.kernel_hash], self.any_kernel[leaf.bsp]


def _template(leaf: Leaf) -> str:
    return leaf.reason if leaf.speedup_low is None else leaf.reason.replace(f"{leaf.speedup_low:.2f}", LOW)


def pack(tree: Tree) -> dict[str, Any]:
    """The tree as plain data."""
    table = _Table(list(tree.answers()))
    own = [[list(shape), *table.names(leaf), leaf.speedup_low] for shape, leaf in tree.own]  # all else follows
    return {
        "op": tree.op, "mode": tree.mode, "measured": {name: list(values) for name, values in tree.measured},
        "configs": table.to_list(), "reasons": table.reasons, "root": _pack(tree.root, table), "own": own,
    }  # fmt: skip


def _pack(at: Node, table: _Table) -> list[Any]:
    if isinstance(at, Leaf):
        return table.leaf(at)
    return [at.feature, at.threshold, _pack(at.below, table), _pack(at.above, table)]


def unpack(values: Mapping[str, Any]) -> Tree:
    """The tree of such data; raises KeyError, TypeError, IndexError or ValueError where a part is missing, unknown, or of another kind."""
    configs = [
        (Config(group["variant"], **dict(zip(group["knobs"], row, strict=True))), group["kernel"])
        for group in values["configs"]
        for row in group["values"]
    ]
    for config, kernel in configs:
        words = isinstance(config.variant, str) and isinstance(kernel, str)
        if not words or not all(type(value) in (str, int) and name != "variant" for name, value in config.knobs):
            raise TypeError(f"it holds a {config.variant!r} with {dict(config.knobs)!r:.80} of the kernel {kernel!r:.80}")
    measured = tuple((name, tuple(seen)) for name, seen in sorted(values["measured"].items()))
    own = tuple(_unpack_own(answer, configs) for answer in values["own"])
    return Tree(values["op"], values["mode"], _unpack(values["root"], configs, values["reasons"]), measured, own)


Configs = Sequence[tuple[Config, str]]


def _at(entries: Sequence[Any], number: object) -> Any:
    """An entry by its number, which must not count from the end."""
    if not isinstance(number, int) or not 0 <= number < len(entries):
        raise ValueError(f"a leaf names entry {number!r} of {len(entries)}")
    return entries[number]


def _bsp_at(configs: Configs, number: object) -> Config:
    """A form of BSP by its number: it answers whatever kernels are installed."""
    config: Config = _at(configs, number)[0]
    if config.variant != "bsp":
        raise ValueError(f"a leaf falls back to {config.variant!r} where it must name a form of BSP")
    return config


def _unpack(values: Any, configs: Configs, reasons: Sequence[str], left: int = DEEPEST) -> Node:
    """A node with so many splits on the way to a leaf at most."""
    match values:
        case [str(feature), int() | float() as threshold, below, above]:
            if not left:
                raise ValueError(f"its tree has more than {DEEPEST} splits on the way to a leaf")
            sides = [_unpack(side, configs, reasons, left - 1) for side in (below, above)]
            return Split(feature, float(threshold), *sides)
        case [named, bsp, other, int() as rows, int() | float() as regret, int() | float() | None as low, why]:
            (config, kernel), reason = _at(configs, named), _at(reasons, why)
        case _:
            raise TypeError(f"a branch of the tree is {values!r:.80}")
    if not isinstance(reason, str) or not reason:
        raise TypeError(f"a leaf has the reason {reason!r}")
    otherwise = None if other is None else _at(configs, other)[0]
    if otherwise is not None and otherwise.variant != config.variant:
        raise ValueError(f"a leaf of {config.variant!r} names {otherwise.variant!r} for shapes that its config does not fit")
    said = reason if low is None else reason.replace(LOW, f"{low:.2f}")
    return Leaf(config, _bsp_at(configs, bsp), rows, regret, low, said, kernel, otherwise)


def _unpack_own(values: Any, configs: Configs) -> tuple[tuple[int | str, ...], Leaf]:
    match values:
        case [[_, *_] as shape, named, bsp, int() | float() | None as low] if all(isinstance(value, int | str) for value in shape):
            config, kernel = _at(configs, named)
            return tuple(shape), own_leaf(config, _bsp_at(configs, bsp), low, kernel)
    raise TypeError(f"a shape of its own is {values!r:.80}")
