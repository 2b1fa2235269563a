"""Goes through the collectives of one graph and replaces what is expected to be faster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import torch
from torch.fx import Graph, Node

import tftune.ops  # noqa: F401  # defines the operators of torch.ops.tftune
from tftune.graph_pass import flight, matching
from tftune.graph_pass.decide import Judge, Judgement, most
from tftune.graph_pass.flight import operator_of
from tftune.graph_pass.matching import GATHER, REDUCE, SCATTER, GatherGemm, GemmReduce, value
from tftune.graph_pass.norm import Norm, norm_after
from tftune.graph_pass.report import Decision
from tftune.graph_pass.rewrite import Editor, Unfit, sizes
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.core.dtypes import word_of
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter
from tftune.models.compatibility import log_once

OPERATORS = {GATHER: "all_gather_gemm", SCATTER: "gemm_reduce_scatter", REDUCE: "gemm_all_reduce"}
"""What a collective is replaced by, where nothing better is said."""

WITH_NORM = "all_reduce with norm"


class Replacement:
    """One run over one graph."""

    def __init__(
        self,
        graph: Graph,
        group: str,
        judge: Judge,
        kind: str,
        unread: Mapping[Node, str] | None = None,
    ) -> None:
        """`unread`: collectives of an engine that stay, each with the reason."""
        self.unread = unread or {}
        self.graph, self.group, self.judge, self.kind = graph, group, judge, kind
        place = judge.workspace
        self.editor = Editor(graph, place.handle, judge.mode)
        self.decisions: list[Decision] = []

    def run(self) -> tuple[Decision, ...]:
        """Replace, and say what was decided for each collective. Nothing that a graph holds makes
        it raise: where a replacement fails, the graph is as it was before that one."""
        own, others = matching.collectives(self.graph, self.group)
        for node, why in others:
            self._kept(node, self.unread.get(node, why))
        duplicates = dict(matching.duplicates(own))
        shared = {wait for wait, earlier in duplicates.items() if self._merged(wait, earlier)}
        for collective, wait in own:
            if wait not in shared:
                self._attempt(collective, wait)
        flight.settle(self.graph, self.editor.wait_for)
        return tuple(self.decisions)

    def _merged(self, wait: Node, earlier: Node) -> bool:
        """Whether a gather is now read from an earlier one of the same tensor."""
        try:
            with self.editor.whole():
                self.editor.put(wait, earlier)
        except Exception as error:
            log_once(f"{wait.name} stays, tftune.compile_pass failed: {error}; please report it")
            return False
        return True

    def _attempt(self, collective: Node, wait: Node) -> None:
        """One collective, replaced as a whole or left."""
        before = len(self.decisions)
        try:
            with self.editor.whole():
                self._consider(collective, wait)
        except Unfit as why:
            del self.decisions[before:]
            self._kept(collective, str(why))
        except Exception as error:
            del self.decisions[before:]
            reason = f"tftune.compile_pass failed: {type(error).__name__}: {error}"
            log_once(f"{collective.target} stays, {reason}; please report it")
            self._kept(collective, reason)

    def _consider(self, collective: Node, wait: Node) -> None:
        if why := self._why_not(wait):
            self._kept(collective, why)
        elif collective.target is GATHER:
            self._gather(collective, wait)
        elif collective.target is SCATTER:
            self._scatter(collective, wait)
        else:
            self._reduce(collective, wait)

    def _kept(self, collective: Node, reason: str, judgement: Judgement | None = None) -> None:
        """Leave a collective, and say why."""
        if judgement is None:
            target: Any = collective.target
            op = OPERATORS.get(target) or str(operator_of(collective)).partition(".")[2]
            judgement = Judgement(op, "", False, reason)
        self._decided(collective.name, judgement, False, reason)

    def _decided(self, name: str, judgement: Judgement, replaced: bool, reason: str) -> None:
        op, times = judgement.operation, (judgement.expected_us, judgement.bsp_us)
        decision = Decision(op, name, self.kind, judgement.shape, replaced, reason, *times)
        self.decisions.append(decision)

    def _replaced(
        self, name: str, judgement: Judgement, span: tuple[Node, Node], note: str = ""
    ) -> None:
        """Say that a call replaces what is read and written between two nodes. Raises `Unfit` where
        it would read another value at the second one."""
        if why := matching.why_changed(*span):
            raise Unfit(why)
        reason = "; ".join(filter(None, (note, judgement.reason)))
        self._decided(name, judgement, True, reason)

    def _why_not(self, wait: Node) -> str | None:
        """Why this workspace cannot do what a collective does, or None."""
        place, result = self.judge.workspace, value(wait)
        if result.device != place.device:
            return f"it is on {result.device} and the workspace on {place.device}"
        collective = matching.argument(wait)
        given = value(matching.argument(collective))
        if given.device != place.device:
            return f"what it exchanges is on {given.device} and the workspace on {place.device}"
        if why := matching.why_misplaced("what it exchanges", given):
            return why
        ranks = matching.argument(collective, 2 if collective.target is SCATTER else 1)
        if collective.target is not REDUCE and ranks != place.world:
            return f"it is of {ranks} ranks and the workspace of {place.world}"
        return None

    def _gather(self, gather: Node, wait: Node) -> None:
        """A gather and what multiplies it: one GEMM, or several."""
        matches: list[GatherGemm] = []
        for a, user in matching.uses(wait):
            match = matching.gather_gemm(a, user, wait)
            if isinstance(match, str) or (why := _why_no_order(match)):
                return self._kept(gather, match if isinstance(match, str) else str(why))
            matches.append(match)
        if not matches:
            return self._kept(gather, "nothing uses it")
        order = {node: place for place, node in enumerate(self.graph.nodes)}
        matches.sort(key=lambda match: order[match.gemm])
        judgements = [self._judged(match) for match in matches]
        if len(matches) > 1:
            return self._several(gather, matches, judgements)
        if not judgements[0].faster:
            return self._kept(gather, judgements[0].reason, judgements[0])
        self.editor.gather_gemm(matches[0])
        self._replaced(gather.name, judgements[0], (gather, matches[0].gemm))

    def _judged(self, found: GatherGemm, n: int | None = None, extra_us: float = 0) -> Judgement:
        """What is expected of one call; `n`: of all its columns, where weights are joined."""
        a = value(found.a)
        return self.judge.judge(
            AllGatherGemm, a.shape[0], extra_us, n=n or found.b.n, k=found.b.k,
            dtype=word_of(a.dtype), shard=found.shard, b_layout=found.b.layout,
        )  # fmt: skip

    def _several(
        self, gather: Node, found: Sequence[GatherGemm], judgements: Sequence[Judgement]
    ) -> None:
        """GEMMs of one gather: one call over their joined weights, or a call for each, whatever is
        faster than BSP of the joined ones."""
        joined = self._joined(found)
        if isinstance(joined, str):
            return self._kept(gather, f"{len(found)} GEMMs use it: {joined}")
        whole = joined.bsp_us
        apart = sum(one.expected_us or 0.0 for one in judgements)
        separate = whole is not None and all(one.faster for one in judgements)
        separate = separate and isinstance(value(found[0].a).shape[0], int)
        if separate and whole is not None and apart < min(whole, joined.expected_us or apart):
            for match, one in zip(found, judgements, strict=True):
                self.editor.gather_gemm(match)
                note = f"one of {len(found)} GEMMs of a gather"
                self._replaced(match.gemm.name, one, (gather, match.gemm), note)
        elif joined.faster:
            self.editor.joined(found, self._constant(found))
            span = gather, found[-1].gemm
            self._replaced(gather.name, joined, span, f"{len(found)} GEMMs as one, weights joined")
        else:
            self._kept(gather, f"{len(found)} GEMMs use it: {joined.reason}", joined)

    def _joined(self, found: Sequence[GatherGemm]) -> Judgement | str:
        """What is expected of one call over joined weights, or why they cannot be joined. Weights
        that are inputs of the graph are copied at each call; constants of inference are not."""
        first = found[0]
        if len({(one.b.layout, one.b.turned, one.shard, one.cast) for one in found}) > 1:
            return "their weights or casts differ in layout"
        if first.b.turned or any(one.b.node.op not in ("placeholder", "get_attr") for one in found):
            return "their weights are computed in the graph"
        extra_us = 0.0
        if not self._constant(found):
            if not isinstance(value(first.a).shape[0], int):
                return "joining their weights at each call costs time where BSP is selected, too"
            weights = [value(one.b.node) for one in found]
            extra_us = self.judge.copy_us(sum(one.numel() * one.itemsize for one in weights))
        return self._judged(first, sum(one.b.n for one in found), extra_us)

    def _constant(self, found: Sequence[GatherGemm]) -> bool:
        """Whether the weights can be joined once: constants of a graph that trains nothing."""
        return self.kind == "inference" and all(one.b.node.op == "get_attr" for one in found)

    def _scatter(self, collective: Node, wait: Node) -> None:
        """A GEMM before a reduce-scatter."""
        match = matching.gemm_reduce(collective)
        if isinstance(match, str) or (why := _why_no_rows(match, wait)):
            return self._kept(collective, match if isinstance(match, str) else str(why))
        judgement = self._reduced(GemmReduceScatter, match)
        if not judgement.faster:
            return self._kept(collective, judgement.reason, judgement)
        target = torch.ops.tftune.gemm_reduce_scatter.default
        self.editor.gemm_reduce(match, wait, target)
        self._replaced(collective.name, judgement, (match.gemm, wait))

    def _reduced(self, kind: Any, found: GemmReduce) -> Judgement:
        a, world = value(found.a), self.judge.workspace.world
        return self.judge.judge(
            kind, a.shape[0], n=found.b.n, k=found.b.k * world, dtype=word_of(a.dtype),
            b_layout=found.b.layout,
        )  # fmt: skip

    def _reduce(self, collective: Node, wait: Node) -> None:
        """An all-reduce: with the GEMM before it, or with the norm behind it, or alone, whatever
        gains the most."""
        if sizes(value(wait).shape) is None:
            return self._kept(collective, "two of its sizes are symbolic")
        if (how := matching.argument(collective, 1)) != "sum":
            return self._kept(collective, f"it reduces by {how}, not by sum")
        gemm, norm = matching.gemm_reduce(collective), norm_after(wait)
        judged: list[tuple[str, Judgement, GemmReduce | Norm | None]] = [
            ("all_reduce", self._summed(wait), None)
        ]
        if isinstance(norm, Norm):
            judged.append((WITH_NORM, self._normed(norm), norm))
        if isinstance(gemm, GemmReduce):
            judged.append(("gemm_all_reduce", self._reduced(GemmAllReduce, gemm), gemm))
        name, best, what = judged[most([judgement for _, judgement, _ in judged])]
        if not best.faster:
            reasons = [_reasons(judged), *(text for text in (gemm, norm) if isinstance(text, str))]
            return self._kept(collective, "; ".join(reasons), best)
        span = collective, wait
        if isinstance(what, GemmReduce):
            target = torch.ops.tftune.gemm_all_reduce.default
            self.editor.gemm_reduce(what, wait, target)
            span = what.gemm, wait
        else:
            self.editor.all_reduce(wait, what)
            if what is not None:
                span = collective, what.out
        note = "with residual and norm" if name == WITH_NORM else ""
        too_large = [f"{op}: {j.reason}" for op, j, _ in judged if j.reason.startswith("it needs")]
        self._replaced(collective.name, best, span, "; ".join(filter(None, [note, *too_large])))

    def _summed(self, wait: Node) -> Judgement:
        total = value(wait)
        return self.judge.judge(
            AllReduce, prod(total.shape[:-1]), n=total.shape[-1], dtype=word_of(total.dtype),
        )  # fmt: skip

    def _normed(self, norm: Norm) -> Judgement:
        """As `_summed`, of the rows that are normalised; with the copy of a residual that no kernel
        can read where it lies."""
        rows, residual, extra_us = value(norm.out), value(norm.residual), 0.0
        if matching.why_misplaced("the residual", residual):
            extra_us = self.judge.copy_us(residual.numel() * residual.itemsize)
        return self.judge.judge(
            AllReduce, prod(rows.shape[:-1]), extra_us, n=rows.shape[-1],
            dtype=word_of(rows.dtype), norm="rms",
        )  # fmt: skip


def _reasons(judged: Sequence[tuple[str, Judgement, Any]]) -> str:
    """Why none of several operators is faster: each with its own reason, where they differ."""
    if len({judgement.reason for _, judgement, _ in judged}) == 1:
        return judged[0][1].reason
    return "; ".join(f"{name}: {judgement.reason}" for name, judgement, _ in judged)


def _why_no_order(found: GatherGemm) -> str | None:
    """Why C cannot be brought into the order of the GEMM's rows, or None. At no loss: C has no more
    columns than A, whose rows the graph brings into order."""
    if found.lead == 1:
        return None
    if not isinstance(found.lead, int):
        return f"batch and tokens are both symbolic: {value(found.a).shape[0]} rows"
    n, k = found.b.n, found.b.k
    return f"ordering rows of {n} of C costs more than {k} of A" if n > k else None


def _why_no_rows(found: GemmReduce, wait: Node) -> str | None:
    """Why A cannot be brought into the order of the shards, or None; as in `_why_no_order`."""
    if sizes(value(wait).shape) is None or not isinstance(found.lead, int):
        return "two of its sizes are symbolic"
    n, k = found.b.n, found.b.k
    return (
        f"ordering rows of {k} of A costs more than {n} of C" if found.lead != 1 and k > n else None
    )
