"""What an artifact says of one layout, as plain data and back. Standard library only.

Configs are written in groups of one variant, with the names of their knobs once; everything else
names them by number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.models.formula.formula import Formula, curves
from tftune.models.gains import Gains
from tftune.models.layout import NEAR, LayoutModel, known_from
from tftune.models.tree.tree import leaves_of, pack, unpack

MOST_ERROR = 50.0
"""The largest error of the logarithm of a speed-up: beyond any that rows have, and its exponential
is a float."""
MOST_BEND = 50.0
"""Logarithm of how far a correction may bend a time at most, all its bends at their largest where
it answers: times stay floats. Artifacts that ship have up to 15.3."""
MOST_WEIGHT, LEAST_US, MOST_US = 1e12, 1e-3, 1e12


def pack_layout(model: LayoutModel) -> dict[str, Any]:
    """The model as plain data."""
    return {
        "layout": operation(model.op).shape.named(model.layout),
        "configs": _groups(model),
        "formulas": [formula.to_list() for formula in model.formulas],
        "known": [known.to_list() for known in model.known],
        "tree": None if model.root is None else pack(model.root),
        "spans": model.spans, "error": model.error,
        **({} if model.gains is None else {"gains": model.gains.to_dict()}),
    }  # fmt: skip


def _groups(model: LayoutModel) -> list[dict[str, Any]]:
    """The configs in their order, those of one variant, kernel and set of knobs that follow each
    other together."""

    def kind(pair: tuple[Config, str]) -> tuple[str, str, list[str]]:
        return pair[0].variant, pair[1], [name for name, _ in pair[0].knobs]

    groups = []
    pairs = zip(model.configs, model.kernels, strict=True)
    for (variant, kernel, knobs), alike in groupby(pairs, kind):
        values = [[config[name] for name in knobs] for config, _ in alike]
        groups.append({"variant": variant, "kernel": kernel, "knobs": knobs, "values": values})
    return groups


def unpack_layout(op: str, mode: str, values: Mapping[str, Any]) -> LayoutModel:
    """The model of such data; raises KeyError, TypeError, IndexError or ValueError where a part is
    missing, unknown or of another kind."""
    configs, kernels = _configs(values["configs"])
    model = LayoutModel(
        op, mode, layout_of(op, values["layout"]), tuple(configs), tuple(kernels),
        tuple(Formula.from_list(each) for each in values["formulas"]),
        tuple(known_from(each) for each in values["known"]),
        None if values["tree"] is None else unpack(values["tree"]),
        bool(values["spans"]), float(values["error"]),
        Gains.from_dict(values["gains"]) if "gains" in values else None,
    )  # fmt: skip
    _check(model)
    return model


def _configs(groups: Sequence[Mapping[str, Any]]) -> tuple[list[Config], list[str]]:
    configs, kernels = [], []
    for group in groups:
        variant, kernel = group["variant"], group["kernel"]
        if not isinstance(kernel, str):
            raise TypeError(f"{variant!s:.80} has the kernel {kernel!r:.80}")
        for row in group["values"]:
            knobs = dict(zip(group["knobs"], row, strict=True))
            configs.append(Config.from_dict({"variant": variant, **knobs}))
            kernels.append(kernel)
    return configs, kernels


def layout_of(op: str, values: Mapping[str, Any]) -> tuple[int | str, ...]:
    """The values of a layout; raises ValueError where a shape of the operation cannot have it."""
    shape = operation(op).shape
    needed = set(shape.LAYOUT) - set(shape.LATER)
    if not needed <= values.keys() <= set(shape.LAYOUT):
        raise ValueError(
            f"a layout says {', '.join(values)} where one of {op} has {', '.join(shape.LAYOUT)}"
        )
    for name, value in values.items():
        if value not in shape.WORDS.get(name, (value,)) or (
            name not in shape.WORDS and type(value) is not int
        ):
            raise ValueError(f"its layout has {name}={value!r:.80}")
    return tuple(
        values[name]
        for name in shape.LAYOUT
        if name not in shape.LATER or values.get(name, getattr(shape, name)) != getattr(shape, name)
    )


def is_error(value: float) -> bool:
    """Whether it may be the error of the logarithm of a speed-up; NaN is none."""
    return 0 <= value <= MOST_ERROR


def _check(model: LayoutModel) -> None:
    """Raises ValueError for what no training writes, and a selection would raise for."""
    if not model.known:
        raise ValueError(f"no shape of {model.title} was measured")
    _check_known(model)
    _check_formulas(model)
    _check_knobs(model)
    leaves = list(leaves_of(model.root)) if model.root is not None else []
    count = len(model.configs)
    for leaf in leaves:
        if not set(leaf.candidates) <= set(range(count)):
            raise ValueError(f"a leaf names configs {leaf.candidates} of {count}")
    _check_gains(model)
    errors = [model.error, *(leaf.error for leaf in leaves)]
    for error in errors if model.gains is None else [*errors, model.gains.error]:
        if not is_error(error):
            raise ValueError(
                f"an error of {model.title} is {error}, and may be 0 to {MOST_ERROR:g}"
            )


def _check_gains(model: LayoutModel) -> None:
    """That each variant is one, and has a number, or none, for each measured shape."""
    known = {config.variant for config in model.configs} - {"bsp"}
    for variant, logs in model.gains.logs.items() if model.gains is not None else ():
        if len(logs) != len(model.known) or variant not in known:
            raise ValueError(
                f"{variant} has {len(logs)} speed-ups, of {len(model.known)} measured shapes; "
                f"the variants of {model.title} are {', '.join(sorted(known))}"
            )
        if not all(log is None or abs(log) <= MOST_ERROR for log in logs):
            raise ValueError(f"a speed-up of {variant} is none that a kernel has")


def _check_known(model: LayoutModel) -> None:
    """That numbers name configs, sizes are those of a shape, and times can be times."""
    shape, count = operation(model.op).shape, len(model.configs)
    names, layout = shape.coordinates(), shape.named(model.layout)
    bsp = {number for number, config in enumerate(model.configs) if config.variant == "bsp"}
    for known in model.known:
        numbers, sizes = {number for number, _ in known.times_us}, len(names)
        if (
            len(known.sizes) != sizes
            or not numbers <= set(range(count))
            or known.best not in numbers
            or not bsp & numbers
        ):
            raise ValueError(
                f"the measured shape {known.sizes} has {len(known.sizes)} sizes of {sizes}, or "
                f"names configs beyond {count}"
            )
        if not all(LEAST_US <= us <= MOST_US for _, us in known.times_us):
            raise ValueError(
                f"the measured shape {known.sizes} has a time that is not positive, or none that "
                "a kernel takes"
            )
        # Raises ValueError where it is none.
        shape.from_dict(layout | dict(zip(names, known.sizes, strict=True)))


def _check_knobs(model: LayoutModel) -> None:
    """That the terms of each config can be computed. A knob or value that is unknown here may be of
    a newer tftune: its config does not answer, and the others do."""
    is_recipe = operation(model.op).space.is_recipe
    timing, sizes = operation(model.op).module("features").timing, model.known[0].sizes
    for config in model.configs:
        try:
            _ = timing(config, 1)(*sizes) if not is_recipe(config) else ()
        except (ArithmeticError, TypeError) as error:
            raise ValueError(
                f"{config.variant} has knobs that give no time ({error}): {config!s:.80}"
            ) from error


def _check_formulas(model: LayoutModel) -> None:
    """That each config has one, of as many weights as there are terms, whose times are floats
    wherever it answers."""
    features, count = operation(model.op).module("features"), len(model.configs)
    if len(model.formulas) != count or any(
        len(formula.weights) != len(features.TERMS) for formula in model.formulas
    ):
        raise ValueError(
            f"{len(model.formulas)} formulas of {count} configs must each have "
            f"{len(features.TERMS)} weights"
        )
    if any(abs(weight) > MOST_WEIGHT for formula in model.formulas for weight in formula.weights):
        raise ValueError(f"a formula of {model.title} has a weight above {MOST_WEIGHT:g}")
    columns = [list(column) for column in zip(*(known.sizes for known in model.known), strict=True)]
    # Below its smallest measured size that grows, a formula is bent as it is there.
    shape = operation(model.op).shape
    growing = columns[shape.coordinates().index(shape.SIZE)]
    growing.append(max(formula.least for formula in model.formulas))
    ends = [min(column) / NEAR for column in columns], [max(column) * NEAR for column in columns]
    widest = curves(
        [max(map(abs, pair)) for pair in zip(*(features.scales(*end) for end in ends), strict=True)]
    )
    for formula in model.formulas:
        if len(formula.bends) not in (0, len(widest)):
            raise ValueError(
                f"a formula of {model.title} has {len(formula.bends)} bends, and may have none or "
                f"{len(widest)}"
            )
        bent = sum(abs(bend) * most for bend, most in zip(formula.bends, widest, strict=False))
        if bent > MOST_BEND:
            raise ValueError(
                f"a formula of {model.title} bends times by more than e to the power of "
                f"{MOST_BEND:g}"
            )
