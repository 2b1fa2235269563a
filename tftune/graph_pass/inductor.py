"""`tftune.compile_pass`: the pass as inductor calls it, on each post-grad graph."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch._inductor import custom_graph_pass
from torch.fx import Graph, Node

import tftune
from tftune.graph_pass.decide import Judge, Place
from tftune.graph_pass.engine_collectives import functional
from tftune.graph_pass.in_place import Asking, InPlace
from tftune.graph_pass.replace import Replacement
from tftune.graph_pass.report import Decision, table
from tftune.kernels.comm.workspace import Workspace, check_group
from tftune.kernels.core.devices import Seen
from tftune.kernels.core.shape import Shape, check_kind
from tftune.models.compatibility import log_once
from tftune.operator import mode_at

_Base: Any = getattr(
    custom_graph_pass, "CustomInferenceAwareGraphPass", custom_graph_pass.CustomGraphPass
)
"""torch 2.13 tells a pass which graphs are of inference, 2.11 does not."""
MAX_BYTES = 1 << 27
"""8,192 tokens of 8,192 elements in 16 bits."""
_WORKSPACES: dict[str, Workspace] = {}
"""By group name. Compiled code names a workspace by its handle, which keeps nothing alive."""


class CompilePass(_Base):  # type: ignore[misc]
    """Replaces collectives of one group, and GEMMs around them, by operators of tftune that
    `select_kernel` expects to be faster; `tftune.compile_pass` makes one.

    `report` has a decision for each collective of every graph seen; `table()` is the same as text.
    A graph that inductor takes from its cache is not seen. `why_idle`: the sentence for which
    nothing is replaced at all, or None.
    """

    def __init__(
        self,
        group_name: str,
        workspace: Workspace | None,
        *,
        mode: str = "graph",
        training: bool | None = None,
        why_idle: str | None = None,
        in_place: InPlace | None = None,
    ) -> None:
        """`in_place`: what measures shapes without an answer; None: nothing is measured."""
        mode_at(mode)
        self.group_name, self.workspace, self.mode = group_name, workspace, mode
        self.training, self.why_idle, self.in_place = training, why_idle, in_place
        self.report: tuple[Decision, ...] = ()
        self.names: tuple[str, ...] = ()
        """What an engine calls the group in collectives of its own."""
        self.sizes: tuple[int, ...] = ()
        """What a symbolic M will be, where an engine says so; the judge has those of a range."""

    def __repr__(self) -> str:
        state = self.why_idle or f"{len(self.report)} collectives seen"
        return f"<CompilePass: group {self.group_name}, mode {self.mode}: {state}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> CompilePass:
        """Itself: torch copies the options of a compilation for its logs, and a process group
        cannot be copied."""
        return self

    def __call__(self, graph: Graph, is_inference: bool | None = None) -> None:
        """Change the graph where that is faster, and log what was decided."""
        missing = self.workspace is None and self.in_place is None
        if why := self.why_idle or ("no workspace" if missing else None):
            log_once(f"tftune.compile_pass replaces nothing: {why}")
            return
        kind = _kind(graph, is_inference, self.training)
        if kind != "inference" and self.training is False:
            log_once("tftune.compile_pass leaves a graph of training: it has training=False")
            return
        with functional(graph, self.names, self.group_name, self._world()) as unread:
            decisions = self._run(graph, kind, unread)
        self.report += decisions
        if decisions:
            logging.getLogger("tftune").info(
                "tftune.compile_pass, %s graph:\n%s", kind, table(decisions)
            )

    def may_replace(self, shape: Shape) -> bool:
        """Whether the answer for a shape is a kernel, or is to be measured when a graph asks."""
        if self.in_place is not None and not self.in_place.is_answered(shape):
            return True
        return tftune.select_kernel(shape, mode_at(self.mode, shape)).config.variant != "bsp"

    def captured_up_to(self, rows: int) -> None:
        """A serving engine says which steps it captures: those of so many rows, and smaller."""
        self.mode = f"graph:{rows}"
        if self.in_place is not None:
            self.in_place.mode = self.mode

    def _world(self) -> int:
        place = self.workspace or (self.in_place and self.in_place.place)
        return place.world if place else 1

    def _run(self, graph: Graph, kind: str, unread: Mapping[Node, str]) -> tuple[Decision, ...]:
        if self.in_place is not None:
            self.workspace = self.in_place.prepare(self._asked(graph, kind), self.workspace)
        if self.workspace is None:  # nothing in this graph needs one
            return ()
        unsure = {} if self.in_place is None else {"is_unsure": self.in_place.is_unsure}
        judge = Judge(self.workspace, self.mode, self.sizes, **unsure)
        return Replacement(graph, self.group_name, judge, kind, unread).run()

    def _asked(self, graph: Graph, kind: str) -> list[Shape]:
        """Every shape that this graph asks about. Equal gathers are merged, which holds whatever is
        decided; else the graph stays as it is."""
        if self.in_place is None:
            return []
        judge = Asking(self.in_place.place, self.mode, self.sizes)
        Replacement(graph, self.group_name, judge, kind).run()
        return judge.shapes

    def table(self) -> str:
        """The report as text: a line for each collective, and the counts; or why the pass is
        idle."""
        return self.why_idle or table(self.report)

    def uuid(self) -> str:
        """What compiled code depends on: tftune's version and this code, the artifacts, what was
        confirmed beside them, the workspace, and how the pass was made. Of what is measured in
        place the lineage says all."""
        made = self.group_name, self.mode, self.training, self.why_idle, self.names, self.sizes
        said = repr((tftune.__version__, _source(), self._answers(), self._held(), made))
        return sha256(said.encode()).hexdigest()

    def _answers(self) -> object:
        selector = tftune._default
        if selector is None:
            return "no selector"
        if self.in_place is None:
            return selector.identity()
        return self.in_place.view.lineage, selector.identity(without=self.in_place.remembered())

    def _held(self) -> object:
        if self.in_place is not None:
            return self.in_place.place.handle, self.in_place.place.world, self.in_place.most_bytes
        place = self.workspace
        return (place.handle, place.world, place.generation_bytes) if place is not None else None


@cache
def _source() -> str:
    """The digest of the pass itself: a checkout has one version for many commits."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _kind(graph: Graph, is_inference: bool | None, training: bool | None) -> str:
    """Which graph of autograd it is: as torch says, else as the caller says. Inductor itself tells
    a backward graph by the names of its inputs, too."""
    if is_inference or (is_inference is None and training is False):
        return "inference"
    names = [node.name for node in graph.nodes if node.op == "placeholder"]
    if any(name.startswith("tangents") for name in names):
        return "backward"
    return "forward" if any(name.startswith("primals") for name in names) else "training"


def compile_pass(
    group: Any = None,
    max_bytes: int | None = None,
    training: bool | None = None,
    *,
    mode: str = "graph",
    workspace: Workspace | None = None,
    confirm: bool = True,
) -> CompilePass:
    """A pass for torch.compile that replaces the collectives of `group` around GEMMs where a kernel
    of tftune is faster here, and leaves the rest.

    What an artifact did not measure on this machine is measured when torch compiles the graph that
    needs it, beside BSP and on all ranks: less than a second a shape, remembered on disk for the
    next start (docs/compile-pass.md). `confirm=False`: nothing is measured, artifacts alone decide.

    Collective: every rank of the default group calls it at once, each with its own tensor-parallel
    group (None: the default group). All ranks agree on what they select, as in `tftune.bind`.
    `max_bytes`: the largest payload of one call, such as [M, K] of a gathered A; None: what graphs
    need, up to 1/64 of a GPU's memory. `training`: False for inference, True for training; None: as
    torch tells, and where it does not (before 2.13) no graph is taken for one of inference. False
    leaves graphs of training alone. `mode`: "graph" where the layer is captured, else "eager";
    "graph:512" where it is captured up to M = 512 alone. `workspace`: one that exists, instead of a
    new one.

    Without a GPU the pass changes nothing, and says so. Raises ValueError where torch.distributed
    is not initialised, for an unknown mode, and for a workspace of other ranks.

    A layer, or a whole model as `parallelize_module` left it::

        pass_ = tftune.compile_pass(dist.group.WORLD)
        layer = torch.nn.Linear(64, 48)
        layer = torch.compile(layer, options={"post_grad_custom_post_pass": pass_})
        assert pass_.report == ()  # until the first call compiles
    """
    mode_at(mode)
    if not dist.is_initialized():
        raise ValueError("tftune.compile_pass needs ranks; call dist.init_process_group first")
    check_group(group)
    check_kind("workspace", workspace, Workspace | None, "what Workspace.create returns")
    group = group or (workspace and workspace.group) or dist.group.WORLD
    ranks = dist.get_world_size(group)
    if workspace is not None and workspace.world != ranks:
        raise ValueError(f"the workspace has {workspace.world} ranks and the group {ranks}")
    able = workspace is not None or torch.cuda.is_available()
    selector = tftune.bind(None, "ok" if able else "no GPU")
    why = selector.bsp_only or ("its group has one rank" if ranks == 1 else None)
    if why is None and not confirm and not selector.artifacts:
        why = "no artifact is loaded, and confirm=False; run `tftune tune all_gather_gemm`"
    name, in_place = str(group.group_name), None
    if why is None and confirm:
        in_place = InPlace(_place(group, workspace), selector, mode, max_bytes)
        workspace = workspace or in_place.first_workspace()
    elif why is None:
        workspace = workspace or _workspace(group, max_bytes or MAX_BYTES)
    return CompilePass(
        name, workspace, mode=mode, training=training, why_idle=why, in_place=in_place
    )


def _place(group: Any, workspace: Workspace | None) -> Place:
    """What is known of a group's operators before it has a workspace."""
    name, rank, world = str(group.group_name), dist.get_rank(group), dist.get_world_size(group)
    if workspace is not None:
        kind = workspace.device, workspace.arch, workspace.chip
        return Place(name, group, rank, world, *kind, can_grow=False, held=workspace.handle)
    device = torch.device("cuda", torch.cuda.current_device())
    arch = "cuda" if torch.version.hip is None else "hip"
    kind = device, arch, Seen.of(torch, device.index).chip
    return Place(name, group, rank, world, *kind, can_grow=world == dist.get_world_size())


def _workspace(group: Any, max_bytes: int) -> Workspace:
    """The workspace of a group, made anew where there is none so large."""
    known = _WORKSPACES.get(group.group_name)
    if known is None or known.group is not group or known.generation_bytes < max_bytes:
        known = _WORKSPACES[group.group_name] = Workspace.create(group, max_bytes)
    return known
