"""What a search of captured shapes takes, and in which order: the shapes that cost most time
first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from tftune.db import evidence
from tftune.db.captured import Count, read_captures
from tftune.db.target import Target
from tftune.db.trial import EVIDENCE, MODES, Measurement, Trial
from tftune.kernels.core.shape import Shape
from tftune.models.selector import Selector, fallback
from tftune.pipeline.bench_factory import world_of


@dataclass(frozen=True)
class Stake:
    """How much time one shape costs."""

    count: Count
    us: float
    """The expected time of one run."""
    source: str
    """Where that is from: "measured" by rows, an artifact's word, or "modelled"."""

    @property
    def at_stake_us(self) -> float:
        return self.count.runs * self.us


@dataclass(frozen=True)
class Part:
    """Shapes that are searched in the same modes, with a share of the budget."""

    modes: tuple[str, ...]
    shapes: tuple[Shape, ...]
    share: float


def stakes(paths: Sequence[Path], op: str, target: Target, db: Path) -> list[Stake]:
    """Every captured shape of an operation that fits the target, the one with most time at stake
    first. `db`: whose rows say what a shape takes, where there is one. Raises ValueError where
    there is none."""
    every = read_captures(paths)
    counts = [count for count in every if count.shape.op == op and count.runs]
    fitting = [count for count in counts if world_of(count.shape) <= target.gpus]
    if not fitting:
        there = ", ".join(sorted({count.shape.op for count in every})) or "nothing"
        raise ValueError(
            f"no captured shape is of {op} on at most {target.gpus} GPUs; captured was {there}"
        )
    expected = _expected(op, target, _rows(db, op, target))
    at_stake = [Stake(count, *expected(count.shape, count.mode)) for count in fitting]
    return sorted(at_stake, key=lambda stake: (-stake.at_stake_us, str(stake.count.shape)))


def parts(found: Sequence[Stake], share: float, modes: Sequence[str]) -> list[Part]:
    """The fewest stakes that hold this share of the time at stake, by mode, in their order."""
    wanted = [stake for stake in found if stake.count.mode in modes]
    left = share * sum(stake.at_stake_us for stake in wanted)
    chosen: dict[str, list[Stake]] = defaultdict(list)
    for stake in wanted:
        if left > 0:
            chosen[stake.count.mode].append(stake)
        left -= stake.at_stake_us
    whole = sum(stake.at_stake_us for stakes in chosen.values() for stake in stakes)
    return [
        Part(
            (mode,),
            tuple(stake.count.shape for stake in chosen[mode]),
            sum(stake.at_stake_us for stake in chosen[mode]) / whole,
        )
        for mode in MODES
        if chosen[mode]
    ]


def timed(parts: Sequence[Part], until: float | None) -> Iterator[tuple[Part, float | None]]:
    """Each part with the seconds that it may take: its share of what is left when its turn comes.
    `until`: the end of the time, as of `time.monotonic`; None: any."""
    share = sum(part.share for part in parts)
    for part in parts:
        left_s = None if until is None else max(0.0, until - monotonic())
        yield part, None if left_s is None else left_s * part.share / share
        share -= part.share


def sentences(found: Sequence[Stake], taken: Sequence[Part]) -> Iterator[str]:
    """What was captured, what of it is searched, and what the figures do not say."""
    whole = sum(stake.at_stake_us for stake in found)
    searched = {(shape, mode) for part in taken for mode in part.modes for shape in part.shapes}
    held = sum(s.at_stake_us for s in found if (s.count.shape, s.count.mode) in searched)
    known = sum(stake.at_stake_us for stake in found if stake.source == "measured")
    yield (
        f"captured: {len(found):,} shapes and modes, {whole / 1e6:,.3f} s of GPU time as expected; "
        f"{len(searched):,} with {held / whole:.1%} of it are searched"
    )
    yield f"{known / whole:.1%} of that time runs on measured shapes"
    modelled = sum(stake.source == "modelled" for stake in found)
    if modelled:
        yield f"the expected time of {modelled:,} is modelled, not measured"
    calls = [s for s in found if s.count.mode == "graph" and s.count.basis != "replays"]
    if calls:
        yield (
            f"{len(calls):,} of mode graph are counts of calls alone: replays of graphs that "
            "tftune.count_replays was not given are missing"
        )


def _rows(db: Path, op: str, target: Target) -> list[Trial]:
    """The measured rows of a database that count; none where there is no database."""
    from tftune.db.store import Store

    if not db.exists():
        return []
    with Store.open(db, write=False) as store:
        rows = store.trials(op=op, target=target.name, bench="node")
        return evidence.counting(rows, store.runs())


def _expected(
    op: str, target: Target, rows: Sequence[Trial]
) -> Callable[[Shape, str], tuple[float, str]]:
    """A function of shape and mode: what one run takes, by the best current row, else an artifact,
    else the model, and which of them says it. It raises ValueError where nothing does."""
    from tftune.pipeline.seeds import artifacts

    best: dict[tuple[Shape, str], float] = {}
    for trial in rows:
        if isinstance(trial.outcome, Measurement) and trial.stage in EVIDENCE:
            place, us = (trial.shape, trial.mode), trial.outcome.median_us
            best[place] = min(us, best.get(place, us))
    own = [artifact for artifact in artifacts(op, target) if artifact.target.name == target.name]
    selector = Selector(*own, check_source=False)

    def us_of(shape: Shape, mode: str) -> tuple[float, str]:
        if (shape, mode) in best:
            return best[shape, mode], "measured"
        answer = selector.select(shape, mode)
        if (us := answer.expected_us or answer.bsp_us) is not None:
            return us, answer.source
        from tftune.models.timeline.simulator import predict

        if off := target.chip.why_no_model(world_of(shape)):
            raise ValueError(
                f"nothing says what {shape} takes on {target}: no row, no artifact, and {off}; "
                "give the shapes with --shapes"
            )
        return predict(shape, fallback(shape, target), mode, target.chip), "modelled"

    return us_of
