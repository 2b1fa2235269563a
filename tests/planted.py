"""What the tests of a warm-up let emulated ranks do: plans that are slow, wrong, or never end."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tftune.kernels.all_gather_gemm import AllGatherGemm, host
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.space import Config
from tftune.tuner.bench.worker import WorldSpec

SHAPE, OTHER = AllGatherGemm(7, 72, 264, 2), AllGatherGemm(16, 72, 264, 2)
SLOW_S = 0.06
MOST = 12
"""Rounds at most: more show nothing more here, and fewer would let a busy machine decide."""
BUDGET_S = 30.0
"""So that nothing is left out because a busy machine is slow."""
_DEFAULTS = {config.variant: SPACE.complete(config) for config in SPACE.defaults(SHAPE)}
FUSED = {variant: _DEFAULTS[variant] for variant in ("push", "staged", "pull")}
"""The default configs of three variants."""
ORIGINAL: dict[str, Any] = {}
DECIDED: list[Any] = []
"""The outcomes that each choice of this process was made by."""
PREPARE, PREPARED = host.prepare, list[Config]()
"""The host's own function; and all configs that this process prepared."""
PLANTS = "TFTUNE_TEST_PLANTS"
"""The environment variable that tells child processes of a rank their plants."""


def plant(plants: Mapping[str, str]) -> None:
    """From now on each variant's plans do what is said: `bsp` its forms, others by their variant.

    Fast, slow and wrong ones compute as BSP does, since the interpreter takes a hundred times as
    long as BSP for any kernel.
    """

    def planted(shape: Any, config: Config, workspace: Workspace) -> Any:
        PREPARED.append(config)
        kind = plants.get(config.variant)
        if kind == "unprepared" and workspace.rank == 1:
            raise RuntimeError("no room for it on this rank")
        fused = kind is not None and config.variant != "bsp"
        plan = PREPARE(shape, SPACE.fallbacks(shape)[0] if fused else config, workspace)
        return plan if kind is None else lambda a, b, c: _run(plan, kind, workspace, (a, b, c))

    host.prepare = planted  # type: ignore[assignment]


def _run(plan: Any, kind: str, workspace: Workspace, operands: tuple[Any, ...]) -> None:
    if kind == "hang" and workspace.rank == 1:
        time.sleep(60)
    if kind == "hang while timed":
        _LAST["calls"] = _LAST.get("calls", 0) + 1
        time.sleep(60 * (_LAST["calls"] > CHECKED and workspace.rank == 1))
    if kind == "killed" and workspace.rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "raises":
        raise RuntimeError("an error at launch")
    if kind == "silent":
        return
    plan(*operands)
    if kind == "slow":
        time.sleep(SLOW_S)
    if kind == "skewed" and workspace.rank == 0:
        operands[-1].view(-1)[0] += 100
        workspace.set_epoch(77)
    if kind == "stale":
        right = operands[-1].clone()
        operands[-1].copy_(_LAST.get("result", right))
        _LAST["result"] = right


_LAST: dict[str, Any] = {}
"""What the last call of a stale plan should have computed, and the calls of one that hangs late."""
CHECKED = 5
"""More calls of a config than its check makes, and fewer than a probe."""


def serve(connection: Connection, spec: WorldSpec, rank: int) -> None:
    """A child process of a sandboxed warm-up, with the plants of its parent."""
    from tftune.tuner.warm_up import contest
    from tftune.tuner.warm_up import world as confirm_world

    contest.MOST = MOST
    plant(pickle.loads(bytes.fromhex(os.environ[PLANTS])))
    confirm_world.serve(connection, spec, rank)


def serve_planted(plants: Mapping[str, str]) -> None:
    """From now on child processes have these plants."""
    from tftune.tuner.warm_up import world as confirm_world

    os.environ[PLANTS] = pickle.dumps(dict(plants)).hex()
    confirm_world.serve = serve


def warm_up(workspace: Workspace, rows: Path, plants: Mapping[str, str], **options: Any) -> Any:
    """A warm-up at both shapes, with plants; what is fused is tried in the order of FUSED."""
    import tftune
    from tftune.confirm import warm_up as confirm
    from tftune.models.selector import Selector
    from tftune.tuner.warm_up import contest

    def remembered(order: Any, outcomes: Any, before: Any) -> Any:
        DECIDED.append(dict(outcomes))
        return decide(order, outcomes, before)

    plant(plants)
    contest.MOST = MOST
    decide = ORIGINAL.setdefault("decided", confirm.decided)
    confirm.decided = remembered
    Selector.shortlist = lambda self, shape, mode, top: tuple(FUSED.values())[:top]  # type: ignore
    options = {"budget_s": BUDGET_S, "top": 3} | options
    return tftune.warm_up([SHAPE, OTHER], workspace, rows=rows, **options)
