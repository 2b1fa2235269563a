"""A tree as plain data, and back: each config and each reason is written once, and leaves name them by number. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tftune.kernels.space import Config
from tftune.models.tree import Leaf, Node, Split, Tree, own_leaf

LOW = "{low}"
"""Stands in a reason for the lower bound of the leaf's speed-up."""


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

    def leaf(self, leaf: Leaf) -> dict[str, Any]:
        also = {} if leaf.otherwise is None else {"otherwise": self.any_kernel[leaf.otherwise]}
        return {
            "config": self.numbers[leaf.config, leaf.kernel_hash], "bsp": self.any_kernel[leaf.bsp], **also, "rows": leaf.rows,
            "worst_regret": leaf.worst_regret, "speedup_low": leaf.speedup_low, "reason": self.reasons.index(_template(leaf)),
        }  # fmt: skip


def _template(leaf: Leaf) -> str:
    return leaf.reason if leaf.speedup_low is None else leaf.reason.replace(f"{leaf.speedup_low:.2f}", LOW)


def pack(tree: Tree) -> dict[str, Any]:
    """The tree as plain data."""
    table = _Table(list(tree.answers()))
    own = [{"shape": list(shape), **_own(table.leaf(leaf))} for shape, leaf in tree.own]
    return {
        "op": tree.op, "mode": tree.mode, "measured": {name: list(values) for name, values in tree.measured},
        "configs": table.to_list(), "reasons": table.reasons, "root": _pack(tree.root, table), "own": own,
    }  # fmt: skip


def _own(leaf: Mapping[str, Any]) -> dict[str, Any]:
    """What is written of the answer of a single shape: all else follows."""
    return {name: leaf[name] for name in ("config", "bsp", "speedup_low")}


def _pack(at: Node, table: _Table) -> dict[str, Any]:
    if isinstance(at, Leaf):
        return table.leaf(at)
    return {"feature": at.feature, "threshold": at.threshold, "below": _pack(at.below, table), "above": _pack(at.above, table)}


def unpack(values: Mapping[str, Any]) -> Tree:
    """The tree of such data; raises KeyError, TypeError, IndexError or ValueError where a part is missing, unknown, or of another kind."""
    configs = [
        (Config(group["variant"], **dict(zip(group["knobs"], row, strict=True))), group["kernel"])
        for group in values["configs"]
        for row in group["values"]
    ]
    for config, kernel in configs:
        if not all(isinstance(value, str | int) for value in (kernel, *config.to_dict().values())):
            raise TypeError(f"it holds the config {config} of the kernel {kernel!r}")
    measured = tuple((name, tuple(seen)) for name, seen in sorted(values["measured"].items()))
    own = tuple(_unpack_own(answer, configs) for answer in values["own"])
    return Tree(values["op"], values["mode"], _unpack(values["root"], configs, values["reasons"]), measured, own)


Configs = Sequence[tuple[Config, str]]


def _at(entries: Sequence[Any], number: object) -> Any:
    """An entry by its number, which must not count from the end."""
    if not isinstance(number, int) or not 0 <= number < len(entries):
        raise ValueError(f"a leaf names entry {number!r} of {len(entries)}")
    return entries[number]


def _unpack(values: Mapping[str, Any], configs: Configs, reasons: Sequence[str]) -> Node:
    if "feature" in values:
        below, above = (_unpack(values[side], configs, reasons) for side in ("below", "above"))
        return Split(values["feature"], float(values["threshold"]), below, above)
    config, kernel = _at(configs, values["config"])
    otherwise = _at(configs, values["otherwise"])[0] if "otherwise" in values else None
    low, reason = values["speedup_low"], _at(reasons, values["reason"])
    numbers = (values["rows"], values["worst_regret"], low or 0)
    if not all(isinstance(number, int | float) for number in numbers) or not isinstance(reason, str) or not reason:
        raise TypeError(f"a leaf holds the numbers {numbers} and the reason {reason!r}")
    said = reason if low is None else reason.replace(LOW, f"{low:.2f}")
    return Leaf(config, _at(configs, values["bsp"])[0], values["rows"], values["worst_regret"], low, said, kernel, otherwise)


def _unpack_own(values: Mapping[str, Any], configs: Configs) -> tuple[tuple[int | str, ...], Leaf]:
    (config, kernel), bsp = _at(configs, values["config"]), _at(configs, values["bsp"])[0]
    shape, low = tuple(values["shape"]), values["speedup_low"]
    if not shape or not all(isinstance(value, int | str) for value in shape) or not isinstance(low or 0, int | float):
        raise TypeError(f"a shape of its own holds {shape} and the bound {low!r}")
    return shape, own_leaf(config, bsp, low, kernel)
