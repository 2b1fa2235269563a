"""An operation as a layer calls it: from operands to the plan of what is selected, and, where torch
must see the call, the operator that stands for it in a graph.

`tftune.ops` declares each operation once, as a function. Its signature gives the operator's schema
and the key under which a plan is kept; the operation's host checks operands and makes plans.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import torch

import tftune
from tftune import checks
from tftune.db.trial import MODES
from tftune.kernels.all_reduce import EPSILON
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core import engine_all_reduce
from tftune.kernels.core.registry import operation
from tftune.kernels.core.shape import LOCAL, Shape, check_kind, check_word
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode.lengths import Facts
from tftune.kernels.runtime.operands import check_out
from tftune.kernels.runtime.plan import Returning, make_room
from tftune.models.compatibility import log_once
from tftune.models.selector import fallback

P = ParamSpec("P")
R = TypeVar("R")
Operands = tuple[torch.Tensor | None, ...]
Size = tuple[int, ...]
KINDS: dict[str, tuple[Any, str, str]] = {
    "torch.Tensor": (torch.Tensor, "a torch.Tensor", "Tensor {}"),
    "torch.Tensor | None": (torch.Tensor | None, "a torch.Tensor, or None", "Tensor? {}"),
    "Workspace": (Workspace, "what tftune.Workspace.create returns", "str {}"),
    "Facts | None": (Facts | None, "tftune.Facts, or None", ""),
    "str": (object, "", "str {}"),
    "float | None": (object, "", f"float {{}}={EPSILON}"),
}
"""By annotation: what an argument must be, how a message says so, and the schema's word, in which a
workspace is its handle."""
EAGER = "out", "facts", "keep_gathered"
"""Arguments that the operator of a graph does not have."""
LIBRARY = torch.library.Library("tftune", "FRAGMENT")
_autocasts, _modes = torch._C._is_any_autocast_enabled, torch._C._len_torch_dispatch_stack


def define(name: str, schema: str, run: Callable[..., Any], fake: Callable[..., Any]) -> Any:
    """Register and return `tftune::<name>`: `run` computes it on every device, and `fake` gives
    results without values.

    Without `torch.library.custom_op`, which looks for aliases at each call (docs/notebook.md,
    2026-11-28). Dynamo does not trace `run`.
    """
    LIBRARY.define(f"{name}{schema}", tags=torch.Tag.pt2_compliant_tag)
    LIBRARY.impl(name, torch.compiler.disable(run), "CompositeExplicitAutograd")
    torch.library.register_fake(f"tftune::{name}", fake, lib=LIBRARY)
    return getattr(torch.ops.tftune, name).default


def mode_at(mode: str, shape: Shape | None = None) -> str:
    """The mode of a call: of "graph:512" it is "graph" up to 512 tokens (M, or those of all
    sequences) and "eager" beyond, as a serving engine runs that captures its small steps; of MODES
    it is the word itself. Raises ValueError for any other.

    >>> from tftune.kernels.all_reduce import AllReduce
    >>> mode_at("graph:512", AllReduce(512, 64, 2)), mode_at("graph:512", AllReduce(513, 64, 2))
    ('graph', 'eager')
    """
    name, _, most = str(mode).partition(":")
    if name == "graph" and most.isdecimal():
        sequences = getattr(shape, "batch", 0) * getattr(shape, "seq_len", 1)
        return "graph" if getattr(shape, "m", sequences) <= int(most) else "eager"
    check_word("mode", mode, (*MODES, "graph:512"))
    return mode


def explained(call: Callable[P, R]) -> Callable[P, R]:
    """The call, which says what it was given where that is no tensor or no workspace. It looks only
    where the call has failed."""

    @wraps(call)
    def explaining(*given: P.args, **named: P.kwargs) -> R:
        try:
            return call(*given, **named)
        except (AttributeError, RuntimeError, TypeError):
            asked = signature(call)
            for name, value in asked.bind(*given, **named).arguments.items():
                if kind := KINDS.get(asked.parameters[name].annotation):
                    check_kind(name, value, *kind[:2])
            raise

    return explaining


def differentiated(*operands: torch.Tensor | None) -> bool:
    """Whether a gradient of any of them is wanted. Where gradients are off it is one look."""
    return torch.is_grad_enabled() and any(
        operand.requires_grad for operand in operands if operand is not None
    )


def begun_at_16(op: str, name: str, operand: Any) -> Any:
    """An operand of a graph, whose user did not choose where it lies, as a kernel needs it: itself,
    or a copy where it does not begin at a multiple of 16 bytes."""
    if operand is None or not (over := operand.data_ptr() % 16):
        return operand
    log_once(
        f"tftune copies {name} of {op} at each call: it begins {over} bytes behind a multiple of "
        "16, where a kernel needs it at one"
    )
    return operand.clone()


@dataclass(eq=False)
class Operator:
    """One operation: `tftune::<name>` in a graph, and what its eager call does."""

    name: str
    size: Callable[..., Size]
    """The result's size, from the number of ranks, the operands and the words; sizes may be
    symbols. Raises ValueError for operands of which no size follows."""
    dims: int = 2
    """Dimensions of the first operand."""
    leading: int = 1
    """How many of them may be 0: then nothing runs, on any rank, and the result is empty."""
    anywhere: tuple[str, ...] = ()
    """Operands that a kernel takes wherever they begin."""
    casts: bool = True
    """Whether autocast casts its operands."""
    instead_of_gradient: str = ""
    """What to do where a gradient is needed, of an operation without a backward."""
    arranged: Callable[..., tuple[Any, ...]] | None = None
    """The operands as a plan takes them; None: as they are."""
    check_first: Callable[..., None] | None = None
    """Looks at operands and shape before the first plan of a shape is made."""

    def __post_init__(self) -> None:
        op = operation(self.name)
        self.kind: type[Shape] = op.shape
        self.host: Any = op.module("host")
        self._in_heap = "operands" in self.kind.WORDS

    def declared(self, eager: Callable[P, R]) -> Callable[P, R]:
        """Register the operator of this function, and return the function to call."""
        signed = signature(eager)
        names = [name for name in signed.parameters if name not in EAGER]
        place = self._place = names.index("workspace")
        kinds = [signed.parameters[name].annotation for name in names]
        tensors = [i for i, kind in enumerate(kinds) if kind.startswith("torch.Tensor")]
        aligned = [names[i] for i in tensors if names[i] not in self.anywhere]
        words = [i for i, name in enumerate(names) if name in self.kind.WORDS]
        self._words = [names[i] for i in words]

        def run(*given: Any) -> Any:
            named: dict[str, Any] = dict(zip(names, given, strict=False))
            named["workspace"] = Workspace.of(given[place])
            for name in aligned:
                named[name] = begun_at_16(self.name, name, named[name])
            return eager(**named)  # type: ignore[call-arg]

        def fake(*given: Any) -> Any:
            ranks = Workspace.of(given[place]).world
            return given[0].new_empty(self.size(ranks, *[given[i] for i in (*tensors, *words)]))

        schema = ", ".join(
            KINDS[kind][2].format(name) for kind, name in zip(kinds, names, strict=True)
        )
        self._traced = define(self.name, f"({schema}) -> Tensor", run, fake)
        return explained(eager)

    def call(
        self,
        operands: Operands,
        workspace: Workspace,
        words: tuple[str, ...],
        mode: str,
        out: torch.Tensor | None,
        *numbers: float,
        config: Config | None = None,
    ) -> torch.Tensor:
        """The result for these operands: written to `out`, where there is one, else new. `words`:
        of the shape, in the order of the signature. `numbers`: what else the host's `prepare` takes
        and a plan depends on. `config`: where the caller has selected."""
        first: Any = operands[0]
        wanted = torch.is_grad_enabled() and differentiated(*operands)
        if wanted and self.instead_of_gradient:
            raise ValueError(
                f"tftune.ops.{self.name} has no backward, and an operand requires a gradient; "
                f"call it under torch.no_grad(), or {self.instead_of_gradient}"
            )
        if config is None and (wanted or self._dispatched()):
            before, behind = operands[: self._place], operands[self._place :]
            result = self._traced(*before, workspace.handle, *behind, *words, mode, *numbers)
            return result if out is None else out.copy_(result)
        if not first.numel() and first.dim() == self.dims and 0 in first.shape[: self.leading]:
            checks.check_empty(self.name, workspace)
            size = self.size(workspace.world, *operands, *words)
            return first.new_empty(size) if out is None else check_out(out, size, first)
        in_heap = self._in_heap and workspace.holds(first)
        key = (
            tftune._default, self.name, words, numbers, config, in_heap,
            *[None if each is None else (each.shape, each.dtype) for each in operands], mode,
        )  # fmt: skip
        known = workspace.calls.get(key)
        if known is None or not self.host.placed_well(*operands, workspace):
            known = self._prepared(operands, workspace, words, numbers, config, key)
        plan, size, _ = known
        given = operands if self.arranged is None else self.arranged(*operands)
        if out is None and type(plan) is Returning:
            return plan.compute(*given)
        result = first.new_empty(size) if out is None else check_out(out, size, first)
        plan(*given, result)
        return result

    def _dispatched(self) -> bool:
        """Whether torch must see the call as one operator: to trace it, to cast operands, or to
        count it (a dispatch mode such as FlopCounterMode)."""
        return torch.compiler.is_compiling() or (self.casts and _autocasts()) or _modes() > 0

    def _prepared(
        self,
        operands: Operands,
        workspace: Workspace,
        words: tuple[str, ...],
        numbers: tuple[float, ...],
        config: Config | None,
        key: tuple[Any, ...],
    ) -> tuple[Any, Size, Shape]:
        """A plan of what is selected for the shape, the size of its result, and the shape; kept
        under `key`, whose last word is the mode. Its first word may be another one by then: where
        no artifact is loaded, selecting loads them."""
        for name, word in zip(self._words, words, strict=True):
            check_word(name, word, self.kind.WORDS[name])
        mode_at(key[-1])  # a word that is none is refused before sizes are compared
        shape = self.host.shape_of(*operands, workspace, *words)
        mode = mode_at(key[-1], shape)
        if self.check_first is not None:
            self.check_first(operands, shape)
        shape, selected = _served(shape, mode) if config is None else (shape, config)
        config = _fitting(self.host, shape, selected, workspace)
        plan = self.host.prepare(shape, config, workspace, *numbers)
        plan = checks.checked(plan, shape, workspace)
        make_room(workspace.calls)
        if tftune._capture is not None:
            plan = tftune._capture.counted(plan, shape, mode)
        key = (tftune._default, *key[1:])
        known = workspace.calls[key] = plan, self.host.result_size(shape), shape
        return known


def _served(shape: Shape, mode: str) -> tuple[Shape, Config]:
    """The shape and config to run. Where nothing was measured with operands on the heap, the answer
    for local ones: every kernel for those takes an operand from wherever it lies."""
    selection = tftune.select_kernel(shape, mode)
    if shape.on_heap and selection.source == "fallback":
        local = type(shape).from_dict(shape.to_dict() | {"operands": LOCAL})
        return local, tftune.select_kernel(local, mode).config
    return shape, selection.config


def _fitting(host: Any, shape: Shape, config: Config, workspace: Workspace) -> Config:
    """The config that is selected; the library's BSP where the selector is of another architecture
    than this workspace, as on emulated ranks, and where the workspace has too little room: a layer
    that was compiled for any M may see a larger one than it was sized for."""
    form = dict(config.knobs).get("form")
    if form in ("one_shot", "two_shot") and workspace.arch != "cuda":
        return fallback(shape)
    if form == engine_all_reduce.FORM and not (
        engine_all_reduce.is_offered(workspace.group) and engine_all_reduce.competes(shape)
    ):
        return fallback(shape)
    needed, held = host.payload_bytes(shape), workspace.generation_bytes
    if config.variant == "bsp" or needed <= held:
        return config
    advice = f"create it with Workspace.create(group, {needed})"
    log_once(
        f"{shape.op} runs BSP where a generation of the workspace is too small",
        f"{shape.op} runs BSP for {shape}: it needs {needed} bytes of {held}; {advice}",
    )
    return fallback(shape)
