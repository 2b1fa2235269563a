"""What the plug-ins share: our pass in the form that an engine's pass manager takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from torch.fx import Graph

import tftune
from tftune.graph_pass.inductor import CompilePass
from tftune.kernels.core.shape import Shape
from tftune.models.compatibility import log_once
from tftune.pipeline.model_config import config_of
from tftune.pipeline.model_shapes import ALL_REDUCE, model_shapes

Range = tuple[int, int]
_MADE: dict[str, CompilePass] = {}
"""By the engine's name of the group: a process compiles several graphs with one pass."""


def pass_of(name: str, group: Any, engine: str) -> CompilePass | None:
    """The pass of the engine's group, made where there is none yet: then it is collective over all
    ranks, as `tftune.compile_pass` is. None, and a warning, where it cannot be made."""
    if name not in _MADE:
        try:
            made = tftune.compile_pass(group, training=False)
        except (ValueError, RuntimeError, NotImplementedError) as error:
            log_once(f"tftune's plug-in made no pass for {engine}, whose layers stay: {error}")
            return None
        made.names = (name,)
        _MADE[name] = made
    return _MADE[name]


def made_pass(name: str) -> CompilePass | None:
    """The pass of the engine's group where there is one."""
    return _MADE.get(name)


def shapes_of(fields: Mapping[str, Any], ranks: int) -> Callable[[int], tuple[Shape, ...]]:
    """For a number of tokens the shapes that a model's all-reduces have, from the fields of its
    `config.json`. A model whose fields say too little has none."""

    def shapes(tokens: int) -> tuple[Shape, ...]:
        try:
            config = config_of(fields, "the engine's configuration of the model")
            return model_shapes(config, ranks, ALL_REDUCE, (tokens,), ()).shapes
        except ValueError:
            return ()

    return shapes


def engine_pass(
    base: Any,
    pass_: CompilePass,
    shapes: Callable[[int], tuple[Shape, ...]],
    current: Callable[[], Range],
    most: int | None = None,
) -> Any:
    """Our pass, which knows the engine's sizes, as an `InductorPass` of the engine, which is
    `base`. `shapes`: what a model asks about at a number of tokens. `current`: the range of tokens
    that is compiled now. `most`: tokens beyond which nothing of a graph is replaced; None: any
    number is served."""

    class EnginePass(base):  # type: ignore[misc]
        """Runs `tftune.compile_pass` for the range that the engine compiles."""

        def __call__(self, graph: Graph) -> None:
            every, pass_.sizes = pass_.sizes, within(pass_.sizes, current())
            try:
                pass_(graph, True)
            finally:
                pass_.sizes = every

        def __deepcopy__(self, memo: dict[int, Any]) -> Any:
            """Itself, as `CompilePass` is."""
            return self

        def uuid(self) -> str:
            return pass_.uuid()

        def is_applicable_for_range(self, compile_range: Any) -> bool:
            """Whether an answer for a number of tokens in vLLM's range names a kernel, or is to be
            measured."""
            first, last = compile_range.start, compile_range.end
            if most is None or last <= most:
                return may_gain(pass_, (first, last), shapes)
            if first <= max(most, 1):
                log_once(
                    f"tftune's plug-in leaves steps of {first} to {last} tokens as they are: one "
                    f"graph serves them, and those of more than {most} are not captured"
                )
            return False

        def is_applicable_for_shape(self, shape: int | None) -> bool:
            """The same for SGLang's number of tokens; None: any number."""
            return may_gain(pass_, (1, 1 << 62) if shape is None else (shape, shape), shapes)

    return EnginePass()


def tell_sizes(pass_: CompilePass, captured: Iterable[int], most: int) -> None:
    """Which numbers of tokens an engine captures, and how many its largest step has. Those between
    run eagerly, and are asked about at the least of them, the largest, and powers of two."""
    sizes = set(captured)
    last = max(sizes, default=0)
    pass_.captured_up_to(last)
    powers = (1 << power for power in range(last.bit_length(), most.bit_length()))
    pass_.sizes = tuple(sorted({*sizes, *powers, *([last + 1, most] if most > last else [])}))


def within(sizes: Iterable[int], tokens: Range) -> tuple[int, ...]:
    """The sizes of a range, both ends included.

    >>> within((1, 2, 4, 8), (2, 4))
    (2, 4)
    """
    return tuple(size for size in sizes if tokens[0] <= size <= tokens[1])


def may_gain(pass_: CompilePass, tokens: Range, shapes: Callable[[int], tuple[Shape, ...]]) -> bool:
    """Whether the pass may replace something in a graph of so many tokens."""
    if pass_.why_idle:
        return False
    sizes = tokens[:1] if tokens[0] == tokens[1] else within(pass_.sizes, tokens)
    asked = [shape for size in sizes for shape in shapes(size)]
    if not asked:
        return bool(sizes)
    return any(pass_.may_replace(shape) for shape in asked)
