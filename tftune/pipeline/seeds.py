"""What a search is told before its first trial: the model, rows of other kernels, worlds and
layouts, and a shipped artifact's configs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tftune.confirm import relatives
from tftune.db.target import Target
from tftune.kernels.core.shape import Shape

if TYPE_CHECKING:
    from tftune.db.store import Store
    from tftune.models.artifact import Artifact
    from tftune.tuner.search.opening import Knowledge


def knowledge(
    op: str, target: Target, shapes: Sequence[Shape], store: Store, *, with_model: bool
) -> Knowledge:
    """What is known of some shapes of one operation on a target. Rows of the database itself count,
    whatever their target, but modelled ones do not. `with_model`: whether the analytic model knows
    enough of the chip."""
    from tftune.models.features import pair_vector
    from tftune.models.timeline.simulator import predict
    from tftune.pipeline.bench_factory import former_rows
    from tftune.tuner.search.opening import Knowledge

    stored = (trial for trial in store.trials(op=op) if trial.bench == "node")
    former = tuple(
        {trial.id: trial for trial in (*former_rows(op, target, shapes), *stored)}.values()
    )
    return Knowledge(
        predict if with_model else None,
        pair_vector,
        former,
        relatives.proposals(artifacts(op, target)),
    )


def artifacts(op: str, target: Target) -> list[Artifact]:
    """The shipped artifacts of this target, or else of its relatives, the nearest first."""
    shipped = relatives.artifacts(op, target)
    return [artifact for artifact in shipped if artifact.target.name == target.name] or shipped
