"""Which of a few configs is the fastest, found within a budget of seconds.

All configs of a shape are timed in turns, so that their ratios are of the same rounds. BSP wins
ties: a fused config wins only where the interval of BSP's time over its own begins at 1.01
(`evidence.is_surely_faster`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from tftune.db.evidence import BSP, is_surely_faster
from tftune.db.trial import Measurement, Outcome
from tftune.kernels.core.space import Config

PROBE = 5
"""Rounds of every config, whatever they take. Where a config is no faster than BSP, all five ratios
lie above 1 in one case of 32: fewer rounds could not support a choice."""
PROBE_S = 0.05
"""What a probe of all may take, however short the time is. Single replays, which are all that is
known before it, kept NCCL's form of BSP at 30 small shapes on 2x H200, where shapes like these have
torch's one-shot ahead (`gemm_all_reduce`, 2026-11-26)."""
MOST = 41
"""Rounds of one config at most, as many as the final stage of a search has."""
BEHIND = 1.1
"""A config whose every probed round took as many times as long as the leader's cannot win."""
NEAR = 0.75
"""BSP's time over a config's from which small changes of it are tried. On 2x H100 a default of 0.77
and one of 0.90 came to 1.03 and 1.23 by two and three of them (`gemm_reduce_scatter` at M = 110,
`gemm_all_reduce` at M = 10, 2026-11-25)."""
Samples = dict[Config, tuple[float, ...]]
"""Microseconds of one call on the slowest rank, by round."""
TimeRounds = Callable[[Sequence[Config], int], tuple[Samples, float]]
"""Times configs in so many rounds: their samples, and the seconds it took. One more round, untimed,
comes first. All ranks get the same values."""


def affordable(round_s: Mapping[Config, float], left_s: float) -> tuple[Config, ...]:
    """The configs whose probe fits into the time left, or into PROBE_S: the slowest go first.

    `round_s`: the seconds that a round of each takes. The fastest BSP form and the fastest fused
    config stay, whatever they take.

    >>> one, two = Config("bsp", form="gather"), Config("bsp", form="gather_registered")
    >>> affordable({one: 0.3, two: 0.1, Config("push"): 0.1}, left_s=2.0)
    (Config('bsp', form='gather_registered'), Config('push'))
    """
    kinds = [[c for c in round_s if (c.variant == BSP) == is_bsp] for is_bsp in (True, False)]
    needed = {min(kind, key=round_s.__getitem__) for kind in kinds if kind}
    kept = dict(round_s)
    for config in sorted(round_s, key=round_s.__getitem__, reverse=True):
        if sum(kept.values()) * (PROBE + 1) > max(left_s, PROBE_S) and config not in needed:
            del kept[config]
    return tuple(kept)


def contest(configs: Sequence[Config], time_rounds: TimeRounds, left_s: float) -> Samples:
    """Samples of each config: a probe of all, then what cannot win is left out for the rest.

    Those that go on get as many rounds as fit into the time left, and all the same number.
    """
    probed, spent_s = time_rounds(configs, PROBE)
    going = near(probed)
    share = sum(median(probed[c]) for c in going) / sum(map(median, probed.values()))
    round_s = spent_s / (PROBE + 1) * share
    count = min(int((left_s - spent_s) / round_s) - 1, MOST - PROBE)
    if count < 1:
        return probed
    more, _ = time_rounds(going, count)
    return probed | {config: probed[config] + more[config] for config in going}


def near(probed: Samples) -> list[Config]:
    """What may still win: fused beside the fastest of all, forms of BSP beside the fastest form."""
    best = min(probed, key=lambda config: median(probed[config]))
    bsp = strongest(probed)

    def is_near(config: Config) -> bool:
        leader = probed[bsp if config.variant == BSP else best]
        ratios = [own / its for own, its in zip(probed[config], leader, strict=True)]
        return min(ratios) < BEHIND

    return [config for config in probed if is_near(config)]


def strongest(samples: Samples) -> Config:
    """The form of BSP with the least median, of those with the most rounds."""
    forms = [config for config in samples if config.variant == BSP]
    rounds = max(len(samples[form]) for form in forms)
    whole = [form for form in forms if len(samples[form]) == rounds]
    return min(whole, key=lambda form: median(samples[form]))


def measured(samples: Samples, errors: Mapping[Config, float | None]) -> dict[Config, Outcome]:
    """A measurement of each config beside the strongest form of BSP, round by round."""
    bsp_us = samples[strongest(samples)]
    outcomes: dict[Config, Outcome] = {}
    for config, us in samples.items():
        stopped_early = len(us) < len(bsp_us)
        outcomes[config] = Measurement(us, bsp_us[: len(us)], errors[config], stopped_early)
    return outcomes


def winner(outcomes: Mapping[Config, Outcome]) -> Config | None:
    """The fused config that is surely faster than BSP by most, else the strongest form of BSP.

    None where no BSP was measured: then nothing is known.
    """
    sure = {
        config: outcome.speedup or 0.0
        for config, outcome in _fused(outcomes).items()
        if is_surely_faster(outcome.speedup_interval or (0.0, 0.0))
    }
    return max(sure, key=sure.__getitem__) if sure else best_form(outcomes)


def best_form(outcomes: Mapping[Config, Outcome]) -> Config | None:
    """The form of BSP that the others were measured against; None where none was measured."""
    known = ((c, m) for c, m in outcomes.items() if c.variant == BSP and isinstance(m, Measurement))
    return next((c for c, m in known if m.samples_us == m.bsp_samples_us), None)


def runner_up(outcomes: Mapping[Config, Outcome]) -> Config | None:
    """The fastest fused config, where it is faster than BSP or comes `NEAR` it."""
    speedups = {config: outcome.speedup or 0.0 for config, outcome in _fused(outcomes).items()}
    best = max(speedups, key=speedups.__getitem__, default=None)
    return best if best is not None and speedups[best] >= NEAR else None


def may_decide(again: Mapping[Config, Outcome], won: Config | None) -> bool:
    """Whether a second look may decide, after one that `won` won: it found a fused config that is
    surely faster than BSP, or it measured BSP and, were it fused, the winner once more."""
    fastest = winner(again)
    if fastest is None or fastest.variant != BSP:
        return fastest is not None
    return won is None or won.variant == BSP or isinstance(again.get(won), Measurement)


def _fused(outcomes: Mapping[Config, Outcome]) -> dict[Config, Measurement]:
    return {
        config: outcome
        for config, outcome in outcomes.items()
        if config.variant != BSP and isinstance(outcome, Measurement)
    }
