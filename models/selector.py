"""Answer `which config for this shape?` from exported artifacts: checked once when loaded, a dict
lookup when asked again.

Standard library only. Whatever does not apply here (another operation, an unmeasured layout,
another kernel, a broken rule) is answered by BSP, the library pattern that is always right, with
the reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator
from functools import partial
from itertools import islice
from typing import Any

from tftune.db.discount import discount_of
from tftune.db.target import Machine, Target
from tftune.db.trial import MODES
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import Shape, check_word
from tftune.kernels.core.space import Config
from tftune.models.answerer import Answerer, Terms
from tftune.models.artifact import Artifact
from tftune.models.bracket import Bracket
from tftune.models.chain import Chain
from tftune.models.compatibility import log_once
from tftune.models.in_forms import InForms, check_facts, choices
from tftune.models.layout import LayoutModel, layout_text
from tftune.models.selection import Selection
from tftune.models.tree.codegen import compiled
from tftune.models.tree.tree import Leaf, walk

MEMO = 1 << 14
"""Answers that are kept for each mode: a server of varying M may see any number of shapes."""


class Selector:
    """Answers for one or more operations by artifacts; `tftune.load` makes one. An answer, once
    given, stays: later calls look it up.

    Of several artifacts of one operation the first answers that has the shape's layout in the mode
    asked for; one that does not hold on this machine is passed over where another one has it.
    `artifacts` has the first of each operation by its name, `chain` all of them.

    >>> import tftune
    >>> shape = tftune.AllGatherGemm(m=64, n=3584, k=8192, world=8)
    >>> selector = tftune.load(target="h200x8")
    >>> selector.select(shape, mode="eager").source
    'measured'
    >>> tftune.Selector().select(shape).reason[:58]
    'there is no artifact for all_gather_gemm; `tftune.warm_up`'
    """

    def __init__(
        self,
        *artifacts: Artifact,
        allow_modelled: bool = False,
        bsp_only: str | None = None,
        check_source: bool = True,
        machine: Machine | None = None,
        logs: bool = False,
    ) -> None:
        """`allow_modelled`: serve configs whose times were predicted. `bsp_only`: the sentence for
        which every answer is BSP. `check_source`: refuse configs whose kernel's source has changed;
        off where rows are judged rather than served. `machine`: where the answers will run; None
        where it has no GPU, or is another than this one. `logs`: each cause of a fallback is
        logged once, as `tftune.load` has it."""
        self.chain = Chain(artifacts, allow_modelled, bsp_only, check_source, machine)
        self.artifacts = {artifact.op: artifact for artifact in reversed(artifacts)}
        self.allow_modelled = allow_modelled
        self.bsp_only = bsp_only
        self.check_source = check_source
        self.machine = machine
        self.logs = logs
        self._answers: defaultdict[str, dict[tuple[Any, ...], Selection]] = defaultdict(dict)
        self._by_shape: dict[tuple[Any, ...], Selection] = {}
        self._in_forms = InForms()
        self._answerers: dict[tuple[Any, ...], tuple[Answerer | str, Artifact | None]] = {}
        self._proposers: dict[tuple[Any, ...], Answerer] = {}
        self._confirmed: dict[tuple[str, tuple[Any, ...]], Selection] = {}
        self._bracket = Bracket()

    def __repr__(self) -> str:
        """Which artifacts it answers by, and what it was told of them."""
        files = [f"{a.op} on {a.target} ({a.digest[:12]})" for a in self.chain.artifacts]
        told = ["allow_modelled"] * self.allow_modelled + ["bsp_only"] * bool(self.bsp_only)
        return f"<Selector: {', '.join([*(files or ['no artifact']), *told])}>"

    def select(self, shape: Shape, mode: str = "graph", facts: Any = None) -> Selection:
        """The config to run, and why. Never raises for a valid shape; raises ValueError for an
        unknown mode, TypeError for what is no shape.

        `facts`: what this rank knows of its operands and no shape tells, such as
        `tftune.Facts(total, longest, empty)` of flash_decode. They move knobs only that each rank
        may set for itself, so that ranks need not have the same. Raises ValueError where they
        cannot be this shape's, or the operation has none.
        """
        key = getattr(shape, "key", None)
        if key is None:
            raise no_shape(shape)
        if facts is not None:
            check_facts(shape, facts)
            selection = self.without_facts(shape, mode)
            return self._in_forms.told(self.artifact(shape, mode), shape, mode, selection, facts)
        try:
            return self._answers[mode].get(key) or self._first(shape, mode)
        except TypeError:  # a mode that cannot be hashed
            check_word("mode", mode, MODES)
            raise

    def choices(self, shape: Shape, mode: str = "graph") -> tuple[Config, ...]:
        """Every config that `select` may name for the shape, whatever the facts: one to four, each
        worth a captured graph of its own. Raises as `select` does."""
        selection = self.without_facts(shape, mode)
        return choices(self.artifact(shape, mode), shape, mode, selection)

    def without_facts(self, shape: Shape, mode: str = "graph") -> Selection:
        """What the shape alone says, before trees over facts; the same for every rank. Raises as
        `select` does."""
        if not isinstance(shape, Shape):
            raise no_shape(shape)
        check_word("mode", mode, MODES)
        key = mode, shape.op, shape.key
        selection = self._confirmed.get((mode, shape.key)) or self._by_shape.get(key)
        if selection is None:
            if len(self._by_shape) >= MEMO:
                self._by_shape.clear()
            selection = self._bracket.select(shape, mode) or self._by_artifact(shape, mode)
            self._by_shape[key] = selection
        return selection

    def _first(self, shape: Shape, mode: str) -> Selection:
        selection = self.without_facts(shape, mode)
        if (mode, shape.key) not in self._confirmed:
            selection = self._in_forms.told(
                self.artifact(shape, mode), shape, mode, selection, None
            )
        answers = self._answers[mode]
        if len(answers) >= MEMO:
            answers.clear()
        answers[shape.key] = selection
        return selection

    def _by_artifact(self, shape: Shape, mode: str) -> Selection:
        answerer, artifact = self.answerer(shape, mode), self.artifact(shape, mode)
        target = artifact.target if artifact else None
        if isinstance(answerer, str):
            return Selection(fallback(shape, target), "fallback", answerer)
        selection = answerer.answer(shape, lambda asked: fallback(asked, target))
        if self.logs and selection.source == "fallback":
            cause = f"{shape.op} in mode {mode}: {layout_text(shape.op, shape.layout)}"
            log_once(cause, f"{shape.op} runs BSP for {shape}, mode {mode}: {selection.reason}")
        return selection

    def answerer(self, shape: Shape, mode: str) -> Answerer | str:
        """What answers for shapes of this layout, or the sentence for which nothing does. Raises
        ValueError for an unknown mode, TypeError for what is no shape."""
        if not isinstance(shape, Shape):
            raise no_shape(shape)
        check_word("mode", mode, MODES)
        return self._answering(shape, mode)[0]

    def artifact(self, shape: Shape, mode: str = "graph") -> Artifact | None:
        """The artifact that answers for shapes of this layout, else the first of the operation,
        else None. Raises as `answerer` does."""
        self.answerer(shape, mode)
        return self._answering(shape, mode)[1]

    def _answering(self, shape: Shape, mode: str) -> tuple[Answerer | str, Artifact | None]:
        key = (shape.op, mode, shape.layout)
        answering = self._answerers.get(key)
        if answering is None:
            answering = self._answerers[key] = self._made(shape, mode)
            for sentence in self._causes(*answering) if self.logs else ():
                log_once(f"{shape.op} runs BSP: {sentence}; see `tftune doctor`")
        return answering

    def _causes(self, found: Answerer | str, artifact: Artifact | None) -> Iterator[str]:
        """Why shapes of a layout fall back, all of them or those that a stale config would answer;
        nothing where `tftune.bind` said it already."""
        if isinstance(found, str) or artifact is None:
            yield from () if self.bsp_only else (str(found),)
            return
        for config, kernel in zip(found.model.configs, found.model.kernels, strict=True):
            if config.variant != "bsp" and (why := self.chain.why_stale(artifact, config, kernel)):
                yield why

    def _made(self, shape: Shape, mode: str) -> tuple[Answerer | str, Artifact | None]:
        artifact = self.chain.answering(shape.op, mode, shape.layout)
        if artifact is None:
            first = None if self.bsp_only else self.artifacts.get(shape.op)
            return self.chain.why_silent(shape, mode), first
        return self._answerer_of(artifact, shape, mode), artifact

    def _answerer_of(
        self, artifact: Artifact, shape: Shape, mode: str, proposed: bool = False
    ) -> Answerer:
        of_mode, lent = artifact.modes[mode], artifact.modes[mode].lent.get(shape.layout)
        why_stale = partial(self.chain.why_stale, artifact, proposed=proposed)
        terms = Terms(artifact.target.chip, why_stale, discount_of(artifact.bench))

        def of(model: LayoutModel, *more: Any) -> Answerer:
            find = compiled(shape.op, model.root) if model.root is not None else lambda shape: 0
            return Answerer(model, terms, find, *more)

        own = of_mode.layouts.get(shape.layout)
        if lent is None:
            return of(of_mode.layouts[shape.layout])
        model = of_mode.layouts[lent.of]
        said = f"{model.title}, which agrees within {lent.error:.1%} ({lent.pairs} pairs)"
        return of(model, said, lent.error / 1.96, None if own is None else of(own))

    def path(self, shape: Shape, mode: str = "graph") -> tuple[str, ...]:
        """The steps in the tree, as in `m = 64 <= 100`; empty where the answer does not come from a
        tree."""
        answerer = self.answerer(shape, mode)
        if isinstance(answerer, str) or answerer.model.root is None or answerer.leaf(shape) is None:
            return ()
        from tftune.models.features import names, vector

        features = dict(zip(names(shape.op), vector(shape.op, shape), strict=True))
        return walk(answerer.model.root, features)[1]

    def leaf(self, shape: Shape, mode: str = "graph") -> Leaf | None:
        """The leaf of the tree; None where the answer does not come from a tree."""
        answerer = self.answerer(shape, mode)
        return None if isinstance(answerer, str) else answerer.leaf(shape)

    def shortlist(self, shape: Shape, mode: str = "graph", top: int = 3) -> tuple[Config, ...]:
        """At most `top` fused configs that may be the fastest for a shape, the likeliest first:
        measured in this layout on this target, valid for the shape, of the kernels installed here,
        whatever form of BSP they were timed beside. Empty where the artifact says nothing, or its
        times are modelled."""
        answerer, artifact = self.answerer(shape, mode), self.artifact(shape, mode)
        if isinstance(answerer, str) or artifact is None or artifact.modelled:
            return ()
        if (key := (shape.op, mode, shape.layout)) not in self._proposers:
            self._proposers[key] = self._answerer_of(artifact, shape, mode, proposed=True)
        answerer = self._proposers[key]
        return tuple(
            islice((config for config in answerer.shortlist(shape) if config.variant != "bsp"), top)
        )

    def confirm(self, shape: Shape, mode: str, selection: Selection) -> None:
        """From now on this is the answer for the shape: it was measured beside BSP here. A selector
        that answers BSP alone stays so. Raises ValueError for an unknown mode."""
        check_word("mode", mode, MODES)
        if self.bsp_only and selection.config.variant != "bsp":
            return
        self._by_shape.clear()  # shapes beside it may be bounded by it now
        self._answers[mode].clear()
        self._bracket.confirm(shape, mode, selection)
        self._confirmed[mode, shape.key] = self._answers[mode][shape.key] = selection

    def identity(self, without: Container[tuple[str, tuple[Any, ...]]] = ()) -> tuple[Any, ...]:
        """What its answers rest on: the same value where it answers the same, in any process.
        `without`: confirmed answers, by mode and key of the shape, that something else says."""
        digests = [(artifact.op, artifact.digest) for artifact in self.chain.artifacts]
        confirmed = sorted(
            (*key, str(selection.config))
            for key, selection in self._confirmed.items()
            if key not in without
        )
        return digests, confirmed, self.allow_modelled, self.bsp_only, sorted(self.disabled())

    def restricted(self, reason: str) -> Selector:
        """A selector that answers BSP for everything, with this reason: what all ranks take when
        they do not agree."""
        return Selector(
            *self.chain.artifacts,
            allow_modelled=self.allow_modelled,
            bsp_only=reason,
            machine=self.machine,
            logs=self.logs,
        )

    def warnings(self) -> Iterator[str]:
        """What differs here from the artifacts' builds and is served all the same, a sentence for
        each."""
        return self.chain.warnings()

    def disabled(self) -> dict[str, str]:
        """`op/variant` of every fused variant whose times do not hold for this machine, or for the
        source installed here, and why."""
        return self.chain.disabled()


def no_shape(value: Any) -> TypeError:
    """What is raised for a value that is no shape: it says what to pass."""
    example = "AllGatherGemm(m=64, n=3584, k=8192, world=8)"
    return TypeError(f"select takes a shape, such as {example}, and was given {value!r:.80}")


def fallback(shape: Shape, target: Target | None = None) -> Config:
    """The form of BSP where nothing is known: on a known target the one that the operation's rule
    names, else the operation's first, which all ranks name alike whether they know their chip or
    not. Sizes beyond floats have no default, and too many ranks no possible form: then what is
    refused is the launcher's to say."""
    space, chip = operation(shape.op).space, target.chip if target else None
    try:
        forms = space.fallbacks(shape, chip)
        return next(form for form in forms if space.why_invalid(shape, form, chip) is None)
    except (ArithmeticError, LookupError, ValueError, StopIteration):
        return next(space.configs(shape, chip, ("bsp",)), space.complete(Config("bsp")))
