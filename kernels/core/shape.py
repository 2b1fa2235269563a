"""The base of every operation's shape: a frozen value that parses from, and prints as, one short
string."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import cache, cached_property
from operator import index
from typing import Any, ClassVar, Self

from tftune.kernels.core.dtypes import DTYPE_BYTES, word_of

LOCAL, HEAP = "local", "heap"
"""Where an operand lies: anywhere in this rank's memory; or in the symmetric heap, on every rank at
the same place."""


def check_kind(name: str, value: Any, kind: Any, expected: str) -> None:
    """Raise TypeError where an argument is of another kind, naming what was given and what to
    give."""
    if not isinstance(value, kind):
        raise TypeError(f"{name}={value!r:.60} is a {type(value).__name__}; give {expected}")


def check_word(name: str, value: Any, known: Collection[str]) -> None:
    """Raise ValueError, with the known words, where `value` is none of them."""
    if value not in known:
        raise ValueError(f"{name}={value!r} is not one of {', '.join(known)}{near(value, known)}")


def near(word: Any, known: Collection[str], least: float = 0.6) -> str:
    """What a refusal adds where a known word is nearly this one. `least`: the share of their
    letters that both have in the same order.

    >>> near("papper", ["paper", "engine"]), near(7, ["paper"])
    ("; did you mean 'paper'?", '')
    """
    from difflib import get_close_matches

    matches = get_close_matches(word, known, 1, least) if isinstance(word, str) else []
    return f"; did you mean {matches[0]!r}?" if matches else ""


def size_of(shape: Shape) -> int:
    """The size that grows from shape to shape; 0 where an operation names none."""
    return int(getattr(shape, shape.SIZE)) if shape.SIZE else 0


def _integer(name: str, value: Any, least: int) -> int:
    """The value of a size, of NumPy's or torch's integers too; raises ValueError for anything else,
    and for one that is too small."""
    integer = None
    with suppress(TypeError):
        integer = None if isinstance(value, bool) else index(value)
    if integer is None or integer < least:
        raise ValueError(f"{name}={value!r} must be an integer of at least {least}")
    return integer


@dataclasses.dataclass(frozen=True, order=True)
class Shape:
    """What one call of an operation computes: sizes, dtypes, layouts and world size.

    Subclasses add fields, name their operation in `op`, list allowed words of a text field in
    `WORDS`, and check themselves in `check`, which raises ValueError with both numbers.
    """

    op: ClassVar[str] = ""
    WORDS: ClassVar[dict[str, tuple[str, ...]]] = {}
    LEAST: ClassVar[dict[str, int]] = {}
    """The least value of an integer field where it is not 1."""
    SIZE: ClassVar[str] = ""
    """The field that grows from shape to shape in a table or figure; the other fields say which."""
    LAYOUT: ClassVar[tuple[str, ...]] = ()
    """Fields that choose the code and the data layout. Times of one layout say nothing of
    another."""
    LATER: ClassVar[tuple[str, ...]] = ()
    """The last fields of LAYOUT, where they came after rows and artifacts were written. Those have
    the default, and no layout names it."""
    SAME_CODE: ClassVar[tuple[str, ...]] = ("dtype",)
    """Fields of LAYOUT that leave the code path as it is: only such layouts may lend each other
    rows."""
    EXCHANGES: ClassVar[bool] = True
    """Whether ranks take part in a call together. Else it is of one rank, and any workspace
    serves."""
    key: ClassVar[tuple[Any, ...]]
    """What identifies a shape: the operation and the fields. A dict finds it faster than the shape
    itself, whose hash and equality are Python's."""

    def __post_init__(self) -> None:
        # The instance's dict holds the fields in order, and nothing else yet: a server builds a
        # shape for every call.
        fields, words = self.__dict__, self.WORDS
        for name, value in fields.items():
            if name in words:
                if value not in words[name]:  # a call for each word would cost a server time
                    fields[name] = value = word_of(value)
                    check_word(name, value, words[name])
            elif type(value) is not int or value < self.LEAST.get(name, 1):
                fields[name] = _integer(name, value, self.LEAST.get(name, 1))
        key = (self.op, *fields.values())
        self.check()
        fields["key"] = key

    def check(self) -> None:
        """Raise ValueError where sizes do not fit each other."""

    @property
    def family(self) -> tuple[Any, ...]:
        """What shapes of one layer share: everything but the number of tokens."""
        raise NotImplementedError(f"{type(self).__name__} does not name its family")

    @cached_property
    def layout(self) -> tuple[Any, ...]:
        """The values of LAYOUT, in its order; without those of LATER that are the default."""
        return tuple(
            value
            for name in self.LAYOUT
            if (value := getattr(self, name)) != getattr(type(self), name, None)
            or name not in self.LATER
        )

    @classmethod
    def named(cls, layout: Sequence[Any]) -> dict[str, Any]:
        """A layout's values by field, as titles and artifacts have them."""
        return dict(zip(cls.LAYOUT, layout, strict=False))

    @property
    def on_heap(self) -> bool:
        """Whether the operand that peers may read lies in the symmetric heap, as
        `Workspace.empty` makes it, so that no call copies it there."""
        return getattr(self, "operands", LOCAL) == HEAP

    @classmethod
    @cache
    def coordinates(cls) -> tuple[str, ...]:
        """The integer fields that are no part of the layout: what an answer is interpolated
        over."""
        return tuple(name for name in cls.sizes() if name not in cls.LAYOUT)

    @property
    def element_bytes(self) -> int:
        """Bytes of one element of `dtype`."""
        return DTYPE_BYTES[getattr(self, "dtype", "")]

    @property
    def sizes_key(self) -> tuple[int, ...]:
        """The values of `coordinates`, in their order."""
        return tuple(getattr(self, name) for name in self.coordinates())

    @property
    def layer(self) -> str:
        """The sizes that do not grow with the work, as in `n=3584,k=8192`: what shares them is held
        out together."""
        return ",".join(
            f"{name}={getattr(self, name)}"
            for name in self.sizes()
            if name not in (self.SIZE, "world")
        )

    @property
    def problem(self) -> str:
        """What all ranks compute together, without their number: shapes of one problem show strong
        scaling."""
        raise NotImplementedError(
            f"{type(self).__name__} does not say what all ranks compute together"
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """The shape written as `m=64,n=3584,k=8192,world=8`; raises ValueError naming the unknown
        or missing field."""
        pairs = {}
        for part in text.replace(" ", "").split(","):
            name, equals, value = part.partition("=")
            if not equals:
                raise ValueError(
                    f"{part!r} in the shape {text!r} is not written as field=value, as in "
                    f"{cls.example()!r}"
                )
            if name in pairs:
                raise ValueError(f"the shape {text!r} names {name!r} twice")
            pairs[name] = value
        return cls.from_dict(pairs)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The shape of a mapping, as read from YAML, JSON or a parsed string."""
        defaults = cls._defaults()
        if unknown := sorted(values.keys() - defaults.keys()):
            raise ValueError(
                f"{cls.op} has no shape field {unknown[0]!r}; it has {', '.join(defaults)}"
                f"{near(unknown[0], defaults)}"
            )
        required = (name for name, value in defaults.items() if value is dataclasses.MISSING)
        if missing := [name for name in required if name not in values]:
            raise ValueError(
                f"the shape of {cls.op} lacks {', '.join(missing)}, as in {cls.example()!r}"
            )
        return cls(**{name: cls._convert(name, value) for name, value in values.items()})

    @classmethod
    def _convert(cls, name: str, value: Any) -> Any:
        if name in cls.WORDS:
            return str(value)
        if isinstance(value, str) and value.isdecimal():
            return int(value)
        return value  # the constructor refuses what is not an integer, 3.5 of a YAML file included

    @classmethod
    @cache
    def _defaults(cls) -> dict[str, Any]:
        """The default of each field, `dataclasses.MISSING` where it has none."""
        return {field.name: field.default for field in dataclasses.fields(cls)}

    @classmethod
    @cache
    def sizes(cls) -> tuple[str, ...]:
        """The names of its integer fields."""
        return tuple(name for name in cls._defaults() if name not in cls.WORDS)

    @classmethod
    def example(cls) -> str:
        """A shape string for help texts and errors."""
        raise NotImplementedError(f"{cls.__name__} has no example")

    def to_dict(self) -> dict[str, Any]:
        return dict(zip(self._defaults(), self.key[1:], strict=True))

    def __str__(self) -> str:
        """The compact string: every field without a default, and the others where they differ from
        it."""
        defaults = self._defaults()
        return ",".join(
            f"{name}={value}" for name, value in self.to_dict().items() if value != defaults[name]
        )
