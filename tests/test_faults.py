"""What a drill injects: decided by shape, config and seed alone, never into BSP, and told apart
from what fails by itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from tftune.db.trial import FAILURES, Failure, Measurement, Outcome, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.chips import H200
from tftune.kernels.core.space import Config
from tftune.tuner.bench.faults import FAULTS, Drill, faulty, injected, marked

SHAPE = AllGatherGemm(64, 3584, 8192, 4)
CONFIGS = tuple(islice(SPACE.configs(SHAPE, H200, ("push",)), 2000))
DRILL = Drill.parse("hang=0.1,crash=0.05,wrong=0.05,oom=0.05,rank_error=0.05", seed=3)


def faults(drill: Drill, shape: AllGatherGemm = SHAPE) -> list[str | None]:
    return [drill.fault(shape, config) for config in CONFIGS]


def test_faults_come_about_as_often_as_asked() -> None:
    counts = Counter(faults(DRILL))
    for name, share in DRILL.shares:
        assert abs(counts[name] / len(CONFIGS) - share) < 0.02, name
    assert abs(counts[None] / len(CONFIGS) - 0.7) < 0.04


def test_the_same_config_always_runs_into_the_same_fault() -> None:
    again = Drill.parse("rank_error=0.05, oom=0.05,wrong=0.05,crash=0.05,hang=0.1", seed=3)
    assert faults(again) == faults(DRILL) and again == DRILL
    # Another process, of another day, resumes: no salted hash.
    assert [DRILL.fault(SHAPE, Config("push", block_m=rows)) for rows in (4, 5, 6)] == [
        "hang",
        None,
        "wrong",
    ]


def test_another_seed_or_shape_draws_anew() -> None:
    drawn = {
        tuple(faults(DRILL)),
        tuple(faults(replace(DRILL, seed=4))),
        tuple(faults(DRILL, replace(SHAPE, m=63))),
    }
    assert len(drawn) == 3


def test_bsp_is_never_faulty() -> None:
    everything = Drill.parse("wrong=1")
    assert {everything.fault(SHAPE, config) for config in SPACE.defaults(SHAPE)} == {None, "wrong"}
    assert {
        everything.fault(SHAPE, config)
        for config in SPACE.defaults(SHAPE)
        if config.variant == "bsp"
    } == {None}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hagn=0.1", "there is no fault 'hagn'; there are hang, crash, wrong, oom, rank_error"),
        ("hang=0.1,", "there is no fault ''; there are hang"),
        ("hang", "hang= is no probability; give numbers from 0 to 1, as in --inject hang="),
        ("hang=often", "hang=often is no probability"),
        ("hang=nan", "hang=nan is no probability"),
        ("hang=-0.1", "hang=-0.1 is no probability"),
        ("hang=0.1,hang=0.2", "gives hang twice"),
        ("hang=0.6,crash=0.5", "sum to 1.1, which is above 1"),
    ],
)
def test_what_is_no_drill_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ValueError) as refused:
        Drill.parse(text)
    assert sentence in str(refused.value)


def test_parts_of_one_may_be_given_whole() -> None:
    assert None not in faults(Drill.parse("hang=0.7,crash=0.1,wrong=0.1,oom=0.1"))


def test_every_fault_says_what_it_does_and_what_it_is_stored_as() -> None:
    assert [
        name
        for name, fault in FAULTS.items()
        if fault.kind not in FAILURES or len(fault.meaning.split()) < 4
    ] == []


def test_only_a_failure_of_the_faults_kind_is_called_injected() -> None:
    hung, died = Failure("hang", "rank 1 was late"), Failure("crash", "rank 1 died")
    assert injected(marked(hung, "hang")) == "hang"
    assert marked(hung, "hang").text.endswith("rank 1 was late")
    assert marked(died, "hang") == died and marked(died, None) == died
    assert injected(died) is None and injected(Measurement((1.0,))) is None


def test_an_unknown_fault_is_refused_where_it_would_act() -> None:
    with pytest.raises(ValueError, match="there is no fault 'fire'"):
        faulty(print, "fire", 0)


def trial(config: Config, outcome: Outcome) -> Trial:
    return Trial(SHAPE, config, "graph", "h200x4", "drill", "run", "code", outcome)


def rows(drill: Drill) -> list[Trial]:
    """What a search with this drill stores; one config without a fault failed by itself."""
    stored = [
        trial(
            c,
            marked(Failure(FAULTS[f].kind, "x"), f)
            if (f := drill.fault(SHAPE, c))
            else Measurement((1.0,)),
        )
        for c in CONFIGS
    ]
    sound = next(
        number for number, row in enumerate(stored) if isinstance(row.outcome, Measurement)
    )
    stored[sound] = replace(stored[sound], outcome=Failure("compile", "by itself"))
    return stored


def test_a_database_keeps_one_drill() -> None:
    DRILL.refuse_another(rows(DRILL), "a.db")
    for other in (
        replace(DRILL, seed=4),
        Drill.parse("hang=0.1", 3),
        Drill.parse("hang=0.2,crash=0.1", 3),
    ):
        with pytest.raises(
            ValueError,
            match=r"a.db holds another drill: .*give the same --inject and --seed as before, or "
            r"another --db",
        ):
            other.refuse_another(rows(DRILL), "a.db")


def test_the_page_of_drills_names_every_fault_and_its_kind(root: Path) -> None:
    page = (root / "docs/drill.md").read_text()
    table = [
        tuple(cell.strip(" `") for cell in line.split("|")[1:4:2])
        for line in page.splitlines()
        if line.startswith("| `")
    ]
    assert {(name, fault.kind) for name, fault in FAULTS.items()} <= set(table)
