"""tftune.warm_up on emulated ranks: they agree, BSP wins ties, what fails is left out then."""

from __future__ import annotations

import logging
import re
import time
from pathlib import Path
from typing import Any

import planted
import pytest
import torch
from planted import FUSED, OTHER, SHAPE
from synthetic import exported

import tftune
from tftune.confirm import warm_up as confirming
from tftune.db.journal import excluded
from tftune.db.store import Store, read_rows
from tftune.db.trial import Failure, Measurement, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm, reference
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.registry import operation
from tftune.kernels.flash_decode import FlashDecode
from tftune.models.selection import Selection
from tftune.models.selector import Selector
from tftune.tuner.warm_up import contest
from tftune.tuner.warm_up.contest import winner

PUSH, STAGED, PULL = FUSED["push"], FUSED["staged"], FUSED["pull"]
FUSED_CONFIGS = set(FUSED.values())
Selections = dict[AllGatherGemm, Selection]


@pytest.fixture(scope="module")
def artifact(make_rows: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It answers push for these shapes."""
    shapes = tuple(AllGatherGemm(m, 72, 264, 2) for m in (1, 4, 7, 16))
    path = tmp_path_factory.mktemp("artifact") / "a.json"
    return exported(make_rows(shapes, bench="node"), path)


def in_turn(
    workspace: Workspace, artifact: Path, plants: list[tuple[Path, dict[str, str]]], mode: str
) -> tuple[list[Selections], list[Any]]:
    """A warm-up for each file of rows and its plants, one after the other in the same process; and
    the outcomes that each choice was made by."""
    tftune.bind(workspace.group, path=artifact)
    found = [planted.warm_up(workspace, rows, kinds, mode=mode) for rows, kinds in plants]
    return found, planted.DECIDED


def outcomes_of(rows: Path, shape: AllGatherGemm) -> dict[Any, Trial]:
    return {trial.config: trial for trial in read_rows(rows)[1] if trial.shape == shape}


PLANTS = {
    "fast": {"bsp": "slow", "push": "fast", "staged": "slow", "pull": "raises"},
    "slow": {"push": "slow", "staged": "unprepared", "pull": "stale"},
    "skewed": {"push": "skewed", "pull": "silent"},
}
"""What each of three warm-ups in one process meets; staged is the real kernel in the last."""


@pytest.fixture(scope="module", params=["graph", pytest.param("eager", marks=pytest.mark.thorough)])
def warm_ups(
    request: pytest.FixtureRequest, artifact: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[dict[str, Selections]], dict[str, Path], list[Any]]:
    """Selections of each warm-up by rank and plants, its rows, and what each rank decided by."""
    folder = tmp_path_factory.mktemp("rows")
    rows = {name: folder / f"{name}.jsonl" for name in PLANTS}
    plants = [(rows[name], kinds) for name, kinds in PLANTS.items()]
    found = emulated.run(2, in_turn, artifact, plants, request.param)
    selections = [dict(zip(PLANTS, selections, strict=True)) for selections, _ in found]
    return selections, rows, [decided for _, decided in found]


def test_all_ranks_select_what_was_fastest(warm_ups: Any) -> None:
    (one, other), _, _ = warm_ups
    assert one == other
    for shape in (SHAPE, OTHER):
        fast, slow = one["fast"][shape], one["slow"][shape]
        assert (fast.config, fast.source) == (PUSH, "measured")
        assert "measured here by tftune.warm_up: push takes" in fast.reason
        assert "times as fast (95 % interval" in fast.reason and "rounds" in fast.reason
        assert fast.interval is not None and fast.speedup is not None
        assert 1 < fast.interval[0] <= fast.speedup <= fast.interval[1]
        assert slow.config.variant == "bsp" and slow.source == "measured"
        assert (slow.speedup, slow.interval) == (1.0, None)
        assert "; the best other config, push, is 0." in slow.reason


FAILED = {
    ("fast", PULL): ("crash", "rank 0: RuntimeError: an error at launch"),
    ("slow", PULL): ("wrong", "on ranks [0, 1]"),
    ("slow", STAGED): ("compile", "rank 1: RuntimeError: no room for it on this rank"),
    ("skewed", PUSH): ("wrong", "on ranks [0], above"),
    ("skewed", PULL): ("wrong", "its result and BSP's differ by inf on ranks [0, 1]"),
}


@pytest.mark.parametrize("case", FAILED, ids=[f"{name}-{c.variant}" for name, c in FAILED])
def test_what_fails_on_one_rank_fails_on_all_and_the_others_go_on(warm_ups: Any, case: Any) -> None:
    _, rows, _ = warm_ups
    name, config = case
    found, (kind, text) = outcomes_of(rows[name], SHAPE), FAILED[case]
    failure = found[config].outcome
    assert isinstance(failure, Failure) and failure.kind == kind and text in failure.text
    left = found.keys() - {config for where, config in FAILED if where == name}
    assert all(isinstance(found[config].outcome, Measurement) for config in left)
    assert left & FUSED_CONFIGS and any(config.variant == "bsp" for config in left)


def test_what_was_wrong_or_crashed_is_not_tried_at_the_next_shape(warm_ups: Any) -> None:
    _, rows, _ = warm_ups
    for (name, config), (kind, _) in FAILED.items():
        assert (config in outcomes_of(rows[name], OTHER)) == (kind == "compile")


def test_a_real_kernel_is_right_after_another_config_failed(warm_ups: Any) -> None:
    """What was wrong left another epoch on rank 0: all ranks begin anew."""
    _, rows, _ = warm_ups
    for shape in (SHAPE, OTHER):
        found = outcomes_of(rows["skewed"], shape)[STAGED].outcome
        assert isinstance(found, Measurement) and (found.check_error or 1) < 1e-3


def test_rows_hold_the_samples_that_were_decided_on(warm_ups: Any) -> None:
    (one, _), files, (decided, others) = warm_ups
    assert decided == others and len(decided) == 2 * len(PLANTS)
    for name, selections in one.items():
        for shape in (SHAPE, OTHER):
            trials = outcomes_of(files[name], shape)
            outcomes = {config: trial.outcome for config, trial in trials.items()}
            assert outcomes == decided.pop(0)
            assert winner(outcomes) == selections[shape].config
            known = {c: m for c, m in outcomes.items() if isinstance(m, Measurement)}
            selection, chosen = selections[shape], known[selections[shape].config]
            assert f"{chosen.median_us:.1f} us" in selection.reason
            assert selection.expected_us == chosen.median_us
            assert selection.near == (shape.sizes_key,)
            assert selection.speedup == pytest.approx(chosen.speedup)
            is_bsp = selection.config.variant == "bsp"
            assert selection.interval == (None if is_bsp else chosen.speedup_interval)
            assert len({m.bsp_samples_us for m in known.values() if not m.stopped_early}) == 1
            assert {trial.stage for trial in trials.values()} == {"warm_up"}


def test_rows_import(warm_ups: Any, store: Store) -> None:
    rows = warm_ups[1]["fast"]
    added, there = store.import_rows(rows)
    assert added == len(read_rows(rows)[1]) and there == 0
    (run,) = store.runs()
    assert run.target == "emulatedx2" and run.build["triton"]
    assert store.check() == []


def cached(workspace: Workspace, artifact: Path, rows: Path) -> Any:
    """Variants that tftune.ops prepared before a warm-up, right after it, and at a second call; and
    what select_kernel says to the selector's owner."""
    selector = tftune.bind(workspace.group, path=artifact)
    a, b = reference.make_inputs(SHAPE, workspace.rank, 0)
    planted.plant({"push": "fast"})
    before = tftune.ops.all_gather_gemm(a, b, workspace)
    planted.warm_up(workspace, rows, {"push": "slow"}, top=1)
    counts = [len(planted.PREPARED)]
    results = [before]
    for _ in range(2):
        results.append(tftune.ops.all_gather_gemm(a, b, workspace))
        counts.append(len(planted.PREPARED))
    prepared = [config.variant for config in planted.PREPARED]
    assert all(torch.allclose(before, result, atol=1e-2) for result in results)
    answers = {str(tftune.select_kernel(SHAPE).config), str(selector.select(SHAPE).config)}
    return prepared[0], prepared[counts[0] : counts[1]], counts[2] - counts[1], answers


def test_a_plan_made_before_is_not_used_afterwards(artifact: Path, tmp_path: Path) -> None:
    for first, then, more, answers in emulated.run(2, cached, artifact, tmp_path / "r.jsonl"):
        assert first == "push" and then == ["bsp"] and more == 0
        assert len(answers) == 1 and answers.pop().startswith("bsp")


def once(workspace: Workspace, artifact: Path, rows: Path, plants: Any, options: Any) -> Selections:
    tftune.bind(workspace.group, path=artifact)
    found: Selections = planted.warm_up(workspace, rows, plants, **options)
    return found


@pytest.mark.parametrize(
    ("fault", "kind"),
    [pytest.param("hang", "hang", marks=pytest.mark.thorough), ("killed", "crash")],
)
def test_a_launch_that_never_ends_is_named_and_left_out_by_the_next_start(
    artifact: Path, tmp_path: Path, fault: str, kind: str
) -> None:
    """One rank does not come back from push; or rank 0 is killed in it."""
    rows, plants = tmp_path / "rows.jsonl", {"push": fault, "staged": "slow", "pull": "slow"}
    options = {"deadline_s": 8.0}
    began = time.monotonic()
    with pytest.raises(RuntimeError, match=r"rank \d ended with") as ended:
        emulated.run(2, once, artifact, rows, plants, options, timeout_s=240)
    assert time.monotonic() - began < 55
    if fault == "hang":
        assert "ended with 75" in str(ended.value)
        assert f"tftune.warm_up: {PUSH} at {SHAPE}, mode graph: rank 0" in str(ended.value)
        assert "had not ended its check after 8 s" in str(ended.value)
    assert list(tmp_path.glob("*.launching")), "what was in flight is on disk"
    for selections in emulated.run(2, once, artifact, rows, plants, options, timeout_s=240):
        assert {found.config.variant for found in selections.values()} == {"bsp"}
    failed = outcomes_of(rows, SHAPE)[PUSH]
    assert isinstance(failed.outcome, Failure) and failed.outcome.kind == kind
    assert PUSH not in outcomes_of(rows, OTHER) and STAGED in outcomes_of(rows, OTHER)
    assert not list(tmp_path.glob("*.launching"))
    triton = read_rows(rows)[0][0].build["triton"]
    found = excluded(rows, "emulatedx2", triton)
    assert {(op, config) for op, config, _ in found} == {("all_gather_gemm", PUSH)}


@pytest.mark.thorough
def test_a_form_of_bsp_is_not_left_out_for_kernels_that_were_timed_beside_it(
    artifact: Path, tmp_path: Path
) -> None:
    """On 4x H200 a contest that did not end had taken registered buffers from every later one."""
    rows, options = tmp_path / "rows.jsonl", {"deadline_s": 8.0}
    plants = {"push": "hang while timed", "staged": "slow", "pull": "slow"}
    with pytest.raises(RuntimeError, match="had not ended timing"):
        emulated.run(2, once, artifact, rows, plants, options, timeout_s=240)
    for selections in emulated.run(2, once, artifact, rows, {}, {"top": 1}, timeout_s=240):
        assert {found.config.variant for found in selections.values()} == {"bsp"}
    triton = read_rows(rows)[0][0].build["triton"]
    found = {config for _, config, _ in excluded(rows, "emulatedx2", triton)}
    assert found == FUSED_CONFIGS


def in_children(workspace: Workspace, artifact: Path, rows: Path, plants: Any) -> Any:
    """A sandboxed warm-up, and what this very process prepared meanwhile."""
    planted.serve_planted(plants)
    tftune.bind(workspace.group, path=artifact)
    found = planted.warm_up(workspace, rows, {}, sandbox=True, deadline_s=8.0)
    return found, planted.PREPARED


@pytest.mark.thorough
def test_in_a_sandbox_a_hang_costs_a_world_and_not_the_process(
    artifact: Path, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.jsonl"
    plants = {"bsp": "slow", "push": "hang", "staged": "fast", "pull": "slow"}
    replies = emulated.run(2, in_children, artifact, rows, plants)
    for selections, prepared in replies:
        assert {found.config for found in selections.values()} == {STAGED} and prepared == []
    failed = outcomes_of(rows, SHAPE)[PUSH].outcome
    assert isinstance(failed, Failure) and failed.kind == "hang"
    assert "after 8 s in tftune.warm_up" in failed.text
    assert PUSH not in outcomes_of(rows, OTHER)
    assert [t.config for t in read_rows(rows)[1]].count(PUSH) == 1, "its row is written once"
    assert not list(tmp_path.glob("*.launching"))


def looking_again(workspace: Workspace, artifact: Path, rows: Path, sandbox: bool) -> Any:
    """A warm-up that tries push first, and holds staged for a small change of it."""
    confirming.changes = lambda shape, mode, config, chip: [STAGED]  # type: ignore[assignment]
    plants = {"bsp": "slow", "push": "fast", "staged": "fast"}
    if sandbox:
        planted.serve_planted(plants)
    tftune.bind(workspace.group, path=artifact)
    return planted.warm_up(workspace, rows, {} if sandbox else plants, top=1, sandbox=sandbox)


@pytest.mark.parametrize("sandbox", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_ranks_look_again_at_small_changes_and_decide_by_that(
    artifact: Path, tmp_path: Path, sandbox: bool
) -> None:
    rows = tmp_path / "rows.jsonl"
    one, other = emulated.run(2, looking_again, artifact, rows, sandbox, timeout_s=240)
    assert one == other and one.keys() == {SHAPE, OTHER}
    for shape, found in one.items():
        assert found.source == "measured" and found.config in (PUSH, STAGED)
        tried = [t.config for t in read_rows(rows)[1] if t.shape == shape]
        assert tried.count(PUSH) == 2 and tried.count(STAGED) == 1


def unapplied(workspace: Workspace, paths: list[Path], rows: Path) -> Any:
    """A warm-up after ranks could not agree on an artifact: selections, and what was logged."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("tftune.confirm.warm_up").addHandler(handler)
    tftune.bind(workspace.group, path=paths[workspace.rank])
    return tftune.warm_up([SHAPE], workspace, rows=rows, budget_s=planted.BUDGET_S), lines


def test_without_an_artifact_that_applies_the_strongest_bsp_is_confirmed(
    artifact: Path, tmp_path: Path
) -> None:
    paths = [artifact, tmp_path / "none.json"]
    first, second = emulated.run(2, unapplied, paths, tmp_path / "rows.jsonl")
    assert first[0] == second[0]
    assert first[0][SHAPE].config.variant == "bsp" and first[0][SHAPE].source == "measured"
    assert "no other config was tried" in first[0][SHAPE].reason
    (line,) = (line for line in first[1] if line.startswith("BSP alone"))
    assert "shapes=1 of=1 reason=rank 1 has not loaded" in line and second[1] == []
    assert len(outcomes_of(tmp_path / "rows.jsonl", SHAPE)) == 2, "both forms of BSP were timed"


WRONG: dict[str, dict[str, Any]] = {
    "has world=8, and the workspace has 2 ranks; give shapes with world=2": {
        "shapes": [AllGatherGemm(64, 3584, 8192, 8)]
    },
    "shapes is empty": {"shapes": []},
    "mode='jit' is not one of graph, eager": {"mode": "jit"},
    "top=-1 must be an integer of at least 0": {"top": -1},
    "deadline_s=0 must be above 0": {"deadline_s": 0},
    "needs 16777216 bytes, and a generation of the workspace has 4194304; make it with": {
        "shapes": [AllGatherGemm(1024, 64, 8192, 2)]
    },
    "cannot write /no/rows.jsonl: No such file": {"rows": "/no/rows.jsonl"},
}


def refused(workspace: Workspace, artifact: Path, folder: Path) -> list[str]:
    """What each wrong call says on this rank; the last one differs between ranks."""
    said = []
    usual = {"shapes": [SHAPE], "rows": folder / "rows.jsonl", "workspace": workspace}

    def call(**options: Any) -> None:
        try:
            tftune.warm_up(**usual | options)
        except ValueError as error:
            said.append(str(error))

    call()
    tftune.bind(workspace.group, path=artifact)
    for options in WRONG.values():
        call(**options)
    call(top=1 + workspace.rank)
    return said


def test_wrong_calls_are_refused_on_every_rank_alike(artifact: Path, tmp_path: Path) -> None:
    for said in emulated.run(2, refused, artifact, tmp_path):
        assert "no selector is bound; call tftune.bind(group) first" in said[0]
        assert len(said) == 2 + len(WRONG)
        for sentence, text in zip(WRONG, said[1:], strict=False):
            assert re.search(sentence, text), text
        assert "rank 1 and rank 0 ask for different warm-ups" in said[-1]
    assert not (tmp_path / "rows.jsonl").exists()


def test_a_warm_up_inside_a_capture_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    fake = 0, 2, "cuda", 4, torch.device("cuda", 0), None, 0, 0, None, None, 4096, None
    with pytest.raises(ValueError, match="while a graph is captured; call it once before all"):
        tftune.warm_up([SHAPE], Workspace(*fake))


REAL = (AllGatherGemm(8, 40, 64, 2, shard="m"), FlashDecode(1, 4, 2, 64, 48, 2))


def unplanted(workspace: Workspace, rows: Path) -> Any:
    """A warm-up that tries every default config of two operations, as the interpreter runs them."""
    tftune.use(Selector())
    contest.PROBE = contest.MOST = 1  # times of an interpreter say nothing
    Selector.shortlist = every_default  # type: ignore[method-assign]
    limits = {"budget_s": 100.0, "deadline_s": 200.0}
    return tftune.warm_up(REAL, workspace, top=9, rows=rows, **limits)


def every_default(selector: Selector, shape: Any, mode: str, top: int) -> tuple[Any, ...]:
    space = operation(shape.op).space
    known = [space.complete(config) for config in space.defaults(shape, None)]
    return tuple(config for config in known if config.variant != "bsp")


@pytest.mark.drill
def test_every_variant_of_both_operations_passes_the_check(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    one, other = emulated.run(2, unplanted, rows, timeout_s=300)
    assert one == other and {found.source for found in one.values()} == {"measured"}
    trials = read_rows(rows)[1]
    for shape in REAL:
        mine = [trial for trial in trials if trial.shape == shape]
        assert not [trial for trial in mine if isinstance(trial.outcome, Failure)]
        assert len({trial.config.variant for trial in mine}) >= 5
        errors = [t.outcome.check_error for t in mine if isinstance(t.outcome, Measurement)]
        assert errors.count(None) == 1, "the form of BSP that the others are held against"


def alone(workspace: Workspace, artifact: Path, rows: Path) -> Selection:
    tftune.bind(workspace.group, path=artifact)
    shape = AllGatherGemm(7, 72, 264, 1)
    return tftune.warm_up([shape], workspace, rows=rows)[shape]


def test_one_rank_confirms_bsp(artifact: Path, tmp_path: Path) -> None:
    (found,) = emulated.run(1, alone, artifact, tmp_path / "rows.jsonl")
    assert found.config.variant == "bsp" and found.source == "measured"
