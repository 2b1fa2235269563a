"""How an operation declares what may vary: choices, rules with their sentence, and a space that can
be counted.

Standard library only, so that a selector and a searcher without torch can ask the same questions as
the launcher.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any

from tftune.kernels.core.chips import Chip
from tftune.kernels.core.shape import Shape, near

Knob = int | str

MAX_WORLD = 16
"""Ranks of one process group at most: one node."""
FLAGS_PER_SOURCE = 16_384
"""Flag words that a workspace keeps for each source rank, whatever the shape or config (design rule
2)."""
MAILBOX_BYTES = 1 << 23
"""Bytes of one of the two generations of a mailbox: a workspace keeps one for words that carry
their epoch, and one for words of data alone."""
CONTROL_BYTES = 4_096 + MAX_WORLD * FLAGS_PER_SOURCE * 4 + 4 * MAILBOX_BYTES
"""Bytes of one rank's control block: counters on lines of their own, the flags, the mailboxes.
`kernels.symmetric` has the layout."""


@dataclass(frozen=True, order=True, init=False, repr=False)
class Config:
    """A variant and its knobs. Hashable, sortable; `repr` is valid source; a knob reads as
    `config["block_m"]` or `config.block_m`.

    >>> Config("push", block_m=128, block_n=256)
    Config('push', block_m=128, block_n=256)
    >>> Config("push", block_m=128).block_m
    128
    """

    variant: str
    knobs: tuple[tuple[str, Knob], ...]

    def __init__(self, variant: str, /, **knobs: Knob) -> None:
        object.__setattr__(self, "variant", variant)
        object.__setattr__(self, "knobs", tuple(sorted(knobs.items())))

    def __hash__(self) -> int:
        """Kept: training looks configs up millions of times."""
        fields = self.__dict__
        if "_hash" not in fields:
            fields["_hash"] = hash((self.variant, self.knobs))
        return int(fields["_hash"])

    def __getitem__(self, name: str) -> Any:
        for knob, value in self.knobs:
            if knob == name:
                return value
        raise KeyError(f"{self!r} has no knob {name!r}")

    def __getattr__(self, name: str) -> Any:
        """A knob; raises AttributeError naming it where there is none."""
        if not name.startswith("_"):  # names that copy and pickle look for
            for knob, value in self.knobs:
                if knob == name:
                    return value
        raise AttributeError(f"a config of {self.__dict__.get('variant')} has no knob {name!r}")

    def to_dict(self) -> dict[str, Any]:
        return {"variant": self.variant, **dict(self.knobs)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Config:
        """The config of such a mapping; raises KeyError without a variant, ValueError naming the
        knob whose value is none."""
        if not isinstance(values, Mapping):
            raise ValueError(
                f"config={reprlib.repr(values):.60} must be a variant and its knobs by name"
            )
        knobs = dict(values)
        if type(variant := knobs.pop("variant")) is not str or not variant.isprintable():
            raise ValueError(f"variant={reprlib.repr(variant):.60} must be printable text")
        for name, value in knobs.items():
            if not name.isprintable() or (
                type(value) is not int and not (type(value) is str and value.isprintable())
            ):
                raise ValueError(
                    f"the knob {name!r:.60} is {reprlib.repr(value):.60}: it must be an integer "
                    "or printable text"
                )
        return cls(variant, **knobs)

    def __reduce__(self) -> tuple[Any, ...]:
        return Config.from_dict, (self.to_dict(),)

    def __repr__(self) -> str:
        knobs = (f"{name}={value!r}" for name, value in self.knobs)
        return f"Config({', '.join([repr(self.variant), *knobs])})"

    def __str__(self) -> str:
        return f"{self.variant}({', '.join(f'{name}={value}' for name, value in self.knobs)})"


@dataclass(frozen=True)
class Choice:
    """One knob: its values, what it means, and the value that an absent knob stands for (the old
    behaviour)."""

    name: str
    values: tuple[Knob, ...]
    meaning: str
    default: Knob
    needs: str = ""
    """The capability of a chip that has this knob; without it, or where no chip is known, only the
    default is chosen."""

    def on(self, chip: Chip | None) -> Choice:
        """What is left to choose on this chip."""
        if not self.needs or (chip is not None and chip.has(self.needs)):
            return self
        return replace(self, values=(self.default,))

    def __post_init__(self) -> None:
        if self.default not in self.values:
            raise ValueError(
                f"the default {self.default!r} of {self.name} is not among its values {self.values}"
            )


@dataclass(frozen=True)
class Rule:
    """A sentence that must hold, and its test. `chip` is None where the machine is not known: then
    the test passes it over."""

    sentence: str
    holds: Callable[[Any, Any, Chip | None], bool]
    """Whether a shape, a config and a chip keep the rule. Reads a config only by its knobs: it is
    asked as soon as those that it reads are chosen."""
    variants: tuple[str, ...] = ()
    learned: bool = False
    """From compiled kernels: an audit compiles what it refuses, too, so that its evidence stays."""
    required: bool = False
    """A launch that breaks it on this chip is wrong or never ends. Other rules that ask for the
    chip say what is not worth trying, or what the compiler will refuse."""

    def applies(self, variant: str) -> bool:
        return not self.variants or variant in self.variants


def one_die_rule(variant: str) -> Rule:
    """The rule for a variant whose words say themselves that they arrived, without a fence."""
    return Rule(
        f"{variant} must run on one die: what the programs of another die store without a fence "
        "may stay in that die's cache",
        lambda s, c, chip: chip is None or chip.can.coherent_stores,
        (variant,),
        required=True,
    )


def resident_rule(variants: tuple[str, ...]) -> Rule:
    """The rule for variants whose programs wait for each other, with a knob for how many."""
    return Rule(
        "all programs must be resident at once: take fewer",
        lambda s, c, chip: chip is None or c["programs"] <= max(8, chip.units),
        variants,
        required=True,
    )


class _AnyShape:
    """Stands for every shape at once: what a rule says without looking at it holds for all."""

    def __getattr__(self, name: str) -> Any:
        raise LookupError(name)


def _holds_for_all(rule: Rule, knobs: Mapping[str, Knob], chip: Chip | None) -> bool:
    try:
        return rule.holds(_AnyShape(), knobs, chip)
    except LookupError:
        return False


def _possible(
    choices: Sequence[Choice],
    rules: Sequence[Rule],
    chosen: dict[str, Knob],
    shape: Shape,
    chip: Chip | None,
) -> Iterator[dict[str, Knob]]:
    """The ways to choose the remaining knobs. A rule that needs a knob not chosen yet stays open;
    one that is broken ends the branch."""
    still_open = []
    for rule in rules:
        try:
            if not rule.holds(shape, chosen, chip):
                return
        except KeyError:
            still_open.append(rule)
    if not choices:
        yield dict(chosen)
        return
    for value in choices[0].values:
        yield from _possible(
            choices[1:], still_open, chosen | {choices[0].name: value}, shape, chip
        )


@dataclass(frozen=True, eq=False)
class Space:
    """The countable set of configs of one operation. One statement of validity, asked by tuner,
    selector, launcher and tests."""

    op: str
    variants: Mapping[str, tuple[Choice, ...]]
    rules: tuple[Rule, ...]
    defaults: Callable[[Any, Chip | None], tuple[Config, ...]]
    """The configs to try first for a shape (on a chip, where it is known), every BSP form before
    the others."""
    likely_forms: Callable[[Any, Chip], tuple[Config, ...]] | None = None
    """The forms of BSP on a known chip where nothing was measured, the likeliest to be the fastest
    first; None: as in `defaults`."""
    of_variant: Callable[[Any, Chip | None, str], Iterable[Config]] | None = None
    """Those `defaults` that are of one variant but `bsp`, worked out without the others; None where
    that saves nothing."""
    revisions: Mapping[str, int] = field(default_factory=dict)
    """Each variant's revision: raised when what runs changes so that times may. A variant that is
    not named has revision 1; see kernels/core/revision.py."""

    @lru_cache(maxsize=1024)  # noqa: B019 (spaces live as long as the process)
    def complete(self, config: Config) -> Config:
        """The config with every absent knob at its default; raises ValueError for an unknown
        variant, knob or value."""
        choices = self.choices(config.variant)
        known = {choice.name: choice for choice in choices}
        for name, value in config.knobs:
            if name not in known:
                raise ValueError(
                    f"{self.op}/{config.variant} has no knob {name!r}; it has "
                    f"{', '.join(known) or 'none'}"
                )
            if value not in known[name].values:
                raise ValueError(
                    f"{name}={value!r} of {self.op}/{config.variant} is not one of "
                    f"{known[name].values}"
                )
        return Config(
            config.variant,
            **{choice.name: choice.default for choice in choices} | dict(config.knobs),
        )

    def fallbacks(self, shape: Shape, chip: Chip | None = None) -> tuple[Config, ...]:
        """The forms of BSP, those first that answer where nothing was measured; without a chip the
        first is the same for all ranks."""
        if chip is not None and self.likely_forms is not None:
            return self.likely_forms(shape, chip)
        return tuple(config for config in self.defaults(shape, chip) if config.variant == "bsp")

    def concrete(self, shape: Shape, config: Config, chip: Chip | None = None) -> Config | None:
        """The config itself; of a recipe, which is a variant without knobs, what the variant's
        default is for this shape: None where it has none."""
        if config.knobs or not self.choices(config.variant):
            return config
        if self.of_variant is not None and config.variant != "bsp":
            return next(map(self.complete, self.of_variant(shape, chip, config.variant)), None)
        return self.recipes(shape, (config.variant,), chip).get(config.variant)

    def recipes(
        self, shape: Shape, variants: Collection[str], chip: Chip | None = None
    ) -> dict[str, Config]:
        """What these variants do by default for a shape, those left out that have no default
        there."""
        listed = self.fallbacks(shape, chip)[:1]
        if set(variants) - {"bsp"}:
            listed += self.defaults(shape, chip)
        by_variant: dict[str, Config] = {}
        for config in listed:
            if config.variant in variants:
                by_variant.setdefault(config.variant, self.complete(config))
        return by_variant

    def is_recipe(self, config: Config) -> bool:
        """Whether it stands for what its variant does by default, which follows the shape: it names
        no knob, and the variant has some."""
        return not config.knobs and bool(self.choices(config.variant))

    def choices(self, variant: str) -> tuple[Choice, ...]:
        if variant not in self.variants:
            raise ValueError(
                f"{self.op} has no variant {variant!r}; it has {', '.join(self.variants)}"
                f"{near(variant, self.variants)}"
            )
        return self.variants[variant]

    def why_invalid(self, shape: Shape, config: Config, chip: Chip | None = None) -> str | None:
        """The sentence of the first rule that this config breaks for this shape (on this chip), or
        None.

        Raises ValueError for an unknown variant, knob or value: that is a mistake, not a property
        of the shape.
        """
        complete = self.complete(config)
        if sentence := self._why_not_on(complete, chip):
            return sentence
        knobs, rules = dict(complete.knobs), self._rules[config.variant]
        return next((rule.sentence for rule in rules if not rule.holds(shape, knobs, chip)), None)

    def why_refused(self, shape: Shape, config: Config, chip: Chip | None) -> str | None:
        """The sentence of the first rule for which a launcher refuses this config, or None.

        These are the rules that hold on any chip and, of those that ask for the chip, the required
        ones. BSP without a chip is the same on all ranks, and must run on every chip, however
        slowly. Raises ValueError for an unknown variant, knob or value.
        """
        complete = self.complete(config)
        for rule in self._rules[config.variant]:
            if not rule.holds(shape, complete, chip if rule.required else None):
                return rule.sentence
        return None

    def _why_not_on(self, complete: Config, chip: Chip | None) -> str | None:
        """The sentence of the first knob that this chip does not have, or None."""
        for choice in self.choices(complete.variant):
            if chip is None or not choice.needs or complete[choice.name] == choice.default:
                continue
            if not chip.has(choice.needs):
                need = choice.needs.replace("_", " ")
                return f"{choice.name} needs {need}, which {chip.name} lacks"
        return None

    @lru_cache(maxsize=2**13)  # noqa: B019
    def judge(self, config: Config, chip: Chip | None = None) -> Callable[[Shape], str | None]:
        """`why_invalid` of one config for many shapes, several times as fast: rules that do not
        look at the shape are asked once."""
        complete = self.complete(config)
        if sentence := self._why_not_on(complete, chip):
            return lambda shape: sentence
        knobs = dict(complete.knobs)
        rules = [
            (rule.holds, rule.sentence)
            for rule in self._rules[config.variant]
            if not _holds_for_all(rule, knobs, chip)
        ]

        def why_invalid(shape: Shape) -> str | None:
            for holds, sentence in rules:
                if not holds(shape, knobs, chip):
                    return sentence
            return None

        return why_invalid

    def configs(
        self, shape: Shape, chip: Chip | None = None, variants: tuple[str, ...] = ()
    ) -> Iterator[Config]:
        """Every possible config of a shape, in a fixed order: variants as declared, knobs as
        declared."""
        for variant in variants or self.variants:
            choices = [choice.on(chip) for choice in self.choices(variant)]
            for values in _possible(choices, self._rules[variant], {}, shape, chip):
                yield Config(variant, **values)

    @cached_property
    def _rules(self) -> dict[str, list[Rule]]:
        return {
            variant: [rule for rule in self.rules if rule.applies(variant)]
            for variant in self.variants
        }

    def digest(self) -> str:
        """Twelve hexadecimal digits that change with any variant, knob or value (Optuna refuses a
        changed categorical)."""
        declared = {
            variant: [(c.name, c.values) for c in choices]
            for variant, choices in self.variants.items()
        }
        return sha256(json.dumps(declared).encode()).hexdigest()[:12]
