"""Shapes as a person gives them: one string, a named set with options, or a YAML or JSON list.
Imports a YAML reader only for YAML."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tftune.db.files import read_file
from tftune.db.trial import LARGEST_SIZE
from tftune.kernels.core.registry import Operation
from tftune.kernels.core.shape import Shape, near

FILE_ENDINGS = (".json", ".yaml", ".yml")


def read_shapes(
    operation: Operation, texts: Iterable[str], world: int | None = None
) -> list[Shape]:
    """The shapes that the texts name, each once, in their order; a text may hold several separated
    by `;`.

    A text is a shape (`m=64,n=3584,k=8192,world=8`), a named set (`paper`,
    `paper:shard=m,dtype=bf16`, or a part of it, `paper:m=16+128`), or the path of a YAML or JSON
    list whose items are such texts or mappings of fields. `world`: the ranks of a named set that
    names none. Raises ValueError naming what is not understood.
    """
    parts = [part.strip() for text in texts for part in text.split(";") if part.strip()]
    shapes = dict.fromkeys(shape for part in parts for shape in _read(operation, part, world))
    if not shapes:
        raise ValueError(
            f"no shapes are given for {operation.name}; give one as "
            f"{operation.shape.example()!r}, {_known(operation)}"
        )
    for shape in shapes:
        for name in shape.sizes():
            if (size := getattr(shape, name)) > LARGEST_SIZE:  # no row can have it
                raise ValueError(f"{name}={size} of {shape} is above {LARGEST_SIZE}")
    return list(shapes)


def _known(operation: Operation) -> str:
    return f"a named set ({', '.join(operation.shape_sets)}), or a YAML or JSON file"


def _read(operation: Operation, text: str, world: int | None) -> list[Shape]:
    name, _, options = text.partition(":")
    if name in operation.shape_sets:
        return _named_set(operation, name, options, world)
    if Path(text).suffix in FILE_ENDINGS:
        return _read_file(operation, Path(text))
    if "=" not in name:
        raise ValueError(
            f"{text!r} is no shape, named set or file of {operation.name}; give "
            f"{operation.shape.example()!r}, {_known(operation)}{near(name, operation.shape_sets)}"
        )
    return [operation.shape.parse(text)]


def _named_set(operation: Operation, name: str, options: str, world: int | None) -> list[Shape]:
    """The set, made with the options that it takes; any other size of the shape keeps what has one
    of these values, as in m=16+128."""
    known = options_of(operation, name)
    sizes = [size for size in operation.shape.sizes() if size not in known]
    given: dict[str, Any] = {"world": world} if world and "world" in known else {}
    kept: dict[str, list[int]] = {}
    for part in filter(None, options.replace(" ", "").split(",")):
        option, _, value = part.partition("=")
        if option in sizes:
            kept[option] = [_integer(option, one) for one in value.split("+")]
        elif option in known:
            given[option] = _integer(option, value) if isinstance(known[option], int) else value
        else:
            has = f"{', '.join(known)}, and {', '.join(sizes)} keep a part of it"
            raise ValueError(
                f"the set {name!r} of {operation.name} has no option {option!r}; it has {has}"
            )
    return _part(name, list(operation.shape_sets[name](**given)), kept)


def options_of(operation: Operation, name: str) -> dict[str, Any]:
    """The options of a named set, with their defaults."""
    options = inspect.signature(operation.shape_sets[name]).parameters
    return {option: parameter.default for option, parameter in options.items()}


def _part(name: str, shapes: list[Shape], kept: Mapping[str, list[int]]) -> list[Shape]:
    """The shapes that have one of the values given for every size; raises ValueError for a value
    that none has."""
    for size, values in kept.items():
        there = dict.fromkeys(shape.to_dict()[size] for shape in shapes)
        if missing := [value for value in values if value not in there]:
            raise ValueError(
                f"the set {name!r} has no {size}={missing[0]}; "
                f"it has {size}={'+'.join(map(str, there))}"
            )
        shapes = [shape for shape in shapes if shape.to_dict()[size] in values]
    return shapes


def _integer(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{name}={text!r} must be an integer of at least 1")
    return int(text)


def _read_file(operation: Operation, path: Path) -> list[Shape]:
    items = _parse(path)
    if not isinstance(items, list):
        raise ValueError(
            f"{path} must hold a list of shapes, not {type(items).__name__}; "
            f"write one as - {operation.shape.example()!r}"
        )
    return [
        shape
        for number, item in enumerate(items, start=1)
        for shape in _item(operation, path, number, item)
    ]


def _item(operation: Operation, path: Path, number: int, item: Any) -> list[Shape]:
    try:
        if isinstance(item, Mapping):
            return [operation.shape.from_dict(dict(item))]
        if isinstance(item, str) and Path(item).suffix not in FILE_ENDINGS:
            return _read(operation, item, None)
    except ValueError as error:
        raise ValueError(f"{path}, item {number}: {error}") from None
    raise ValueError(
        f"{path}, item {number}: {item!r} is neither a mapping of fields nor a shape such as "
        f"{operation.shape.example()!r}"
    )


def _parse(path: Path) -> Any:
    """The content of the file; raises ValueError where it is not valid JSON or YAML."""
    try:
        text = read_file(path).decode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is no text in UTF-8: {error.reason} at byte {error.start}"
        ) from None
    kind = "JSON" if path.suffix == ".json" else "YAML"
    try:
        return json.loads(text) if kind == "JSON" else _yaml(text)
    except RecursionError:
        raise ValueError(f"{path} is nested deeper than any list of shapes") from None
    except ValueError as error:
        raise ValueError(f"{path} is not valid {kind}: {' '.join(str(error).split())}") from None


def _yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
