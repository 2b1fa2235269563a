"""What an artifact says of one layout, as plain data and back. Standard library only.

Configs are written in groups of one variant, with the names of their knobs once; everything else names them by number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tftune.kernels.registry import operation
from tftune.kernels.space import Config
from tftune.models.formula import Formula
from tftune.models.layout import LayoutModel, known_from
from tftune.models.tree import leaves_of, pack, unpack


def pack_layout(model: LayoutModel) -> dict[str, Any]:
    """The model as plain data."""
    return {
        "layout": dict(zip(operation(model.op).shape.LAYOUT, model.layout, strict=True)),
        "configs": _groups(model),
        "formulas": [formula.to_list() for formula in model.formulas],
        "known": [known.to_list() for known in model.known],
        "tree": None if model.root is None else pack(model.root),
        "spans": model.spans, "error": model.error, "rule": model.rule,
    }  # fmt: skip


def _groups(model: LayoutModel) -> list[dict[str, Any]]:
    """The configs in their order, those of one variant, kernel and set of knobs that follow each other together."""
    groups: list[dict[str, Any]] = []
    for config, kernel in zip(model.configs, model.kernels, strict=True):
        knobs = [name for name, _ in config.knobs]
        if not groups or (groups[-1]["variant"], groups[-1]["kernel"], groups[-1]["knobs"]) != (config.variant, kernel, knobs):
            groups.append({"variant": config.variant, "kernel": kernel, "knobs": knobs, "values": []})
        groups[-1]["values"].append([config[name] for name in knobs])
    return groups


def unpack_layout(op: str, mode: str, values: Mapping[str, Any]) -> LayoutModel:
    """The model of such data; raises KeyError, TypeError, IndexError or ValueError where a part is missing, unknown or of another kind."""
    configs, kernels = _configs(values["configs"])
    model = LayoutModel(
        op, mode, _layout(op, values["layout"]), tuple(configs), tuple(kernels),
        tuple(Formula.from_list(each) for each in values["formulas"]),
        tuple(known_from(each) for each in values["known"]),
        None if values["tree"] is None else unpack(values["tree"]),
        bool(values["spans"]), float(values["error"]), str(values["rule"]),
    )  # fmt: skip
    _check(model)
    return model


def _configs(groups: Sequence[Mapping[str, Any]]) -> tuple[list[Config], list[str]]:
    pairs = [
        (Config.from_dict({"variant": group["variant"], **dict(zip(group["knobs"], row, strict=True))}), group["kernel"])
        for group in groups
        for row in group["values"]
    ]
    for config, kernel in pairs:
        if not isinstance(kernel, str):
            raise TypeError(f"{config.variant} has the kernel {kernel!r:.80}")
    return [config for config, _ in pairs], [kernel for _, kernel in pairs]


def _layout(op: str, values: Mapping[str, Any]) -> tuple[int | str, ...]:
    shape = operation(op).shape
    if values.keys() != set(shape.LAYOUT):
        raise ValueError(f"a layout says {', '.join(values)} where one of {op} has {', '.join(shape.LAYOUT)}")
    found = tuple(values[name] for name in shape.LAYOUT)
    for name, value in zip(shape.LAYOUT, found, strict=True):
        if value not in shape.WORDS.get(name, (value,)) or (name not in shape.WORDS and type(value) is not int):
            raise ValueError(f"its layout has {name}={value!r:.80}")
    return found


def _check(model: LayoutModel) -> None:
    """Raises ValueError where numbers name no config, or sizes and terms are not as many as the operation has."""
    op, count = operation(model.op), len(model.configs)
    features, sizes = op.module("features"), len(op.shape.coordinates())
    if len(model.formulas) != count or any(len(formula.weights) != len(features.TERMS) for formula in model.formulas):
        raise ValueError(f"{len(model.formulas)} formulas of {count} configs must each have {len(features.TERMS)} weights")
    if not model.known:
        raise ValueError(f"no shape of {model.title} was measured")
    bsp = {number for number, config in enumerate(model.configs) if config.variant == "bsp"}
    for known in model.known:
        numbers = {number for number, _ in known.times_us}
        if len(known.sizes) != sizes or not numbers <= set(range(count)) or known.best not in numbers or not bsp & numbers:
            raise ValueError(f"the measured shape {known.sizes} has {len(known.sizes)} sizes of {sizes}, or names configs beyond {count}")
        if not all(us > 0 for _, us in known.times_us):
            raise ValueError(f"the measured shape {known.sizes} has a time that is not positive")
    for leaf in leaves_of(model.root) if model.root is not None else ():
        if not set(leaf.candidates) <= set(range(count)):
            raise ValueError(f"a leaf names configs {leaf.candidates} of {count}")
