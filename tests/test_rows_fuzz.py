"""A row that is none is refused where it enters, with its line and field; whatever is let in can be
stored and read by everyone."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Tftune
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stored import ENDED, RUN, TRIALS

from tftune.db.store import Store, StoreError, read_rows
from tftune.db.trial import Measurement, Run, Trial
from tftune.report.run_health import sentence

DEEP = "[" * 100_000
NESTED: Any = {}
for _ in range(20):
    NESTED = {"0": NESTED}
BAD_TRIALS = [
    ({"config": {"variant": "fused", "kv_splits": [1]}}, "the knob 'kv_splits' is [1]"),
    ({"config": {"variant": "fused", "kv_splits": True}}, "the knob 'kv_splits' is True"),
    ({"config": {"variant": "fused", "\ud800": 1}}, r"the knob '\ud800' is 1"),
    ({"config": {"variant": 5}}, "variant=5"),
    ({"config": [["variant", "push"]]}, "config=[['variant', 'push']]"),
    ({"us": [10**400, 12.5]}, "us has 1000000"),
    ({"us": [10, True]}, "us has True"),
    ({"us": [10.0, 0.001]}, "us has 0.001"),
    ({"us": [1e300, 12.5]}, "us has 1e+300: times must be numbers, positive and at most 1e+12"),
    ({"us": "10"}, "us='10'"),
    ({"us": [], "bsp_us": []}, "us is empty"),
    ({"bsp_us": [1.0, float("nan")]}, "bsp_us has nan"),
    ({"check_error": True}, "check_error=True"),
    ({"check_error": "abc"}, "check_error='abc'"),
    ({"check_error": -1}, "check_error=-1"),
    ({"check_error": float("inf")}, "check_error=inf"),
    ({"check_error": 2**63}, "check_error=9223372036854775808"),
    ({"stopped_early": 1}, "stopped_early=1"),
    ({"target": 5}, "target=5"),
    ({"target": "../../../out/px8"}, "target='../../../out/px8' must be <chip>x<number of GPUs>"),
    ({"target": "/h200x8"}, "target='/h200x8'"),
    ({"target": "h200x8\x1b[31m"}, r"target='h200x8\x1b[31m'"),
    ({"target": "h200"}, "target='h200'"),
    ({"run": "r1\x1b[31m"}, r"run='r1\x1b[31m' must be text without control characters"),
    ({"kernel": "r1\n"}, r"kernel='r1\n'"),
    ({"created": "yesterday"}, "created='yesterday' must be an instant of UTC"),
    ({"created": "2026-13-01"}, "created='2026-13-01'"),
    ({"created": "2026-11-25T10:00:00+02:00"}, "created='2026-11-25T10:00:00+02:00'"),
    ({"op": "../all_gather_gemm"}, "'../all_gather_gemm'"),
    ({"created": 5}, "created=5"),
    ({"created": "\ud800"}, r"created='\ud800'"),
    ({"run": 5}, "run=5"),
    ({"run": [9] * 1000}, "run=[9, 9, 9, 9, 9, 9, ...] "),
    ({"shape": 5}, "shape=5"),
    ({"shape": f"m=64,n={10**300},k=8192,world=8"}, "n=1000000"),
    ({"op": []}, "op=[]"),
    ({"op": "matmul"}, "no operation 'matmul'"),
    ({"shape": "m=64"}, "lacks n, k, world"),
    ({"mode": "jit"}, "mode='jit' is not one of "),
    ({"bench": "laptop"}, "bench='laptop' is not one of "),
    ({"stage": "last"}, "stage='last' is not one of "),
    ({"failure": [], "text": ""}, "failure=[]"),
    ({"failure": "hang", "text": 5}, "text=5"),
]
BAD_RUNS = [
    ({"id": 5}, "id=5"),
    ({"started": None}, "started=None"),
    ({"started": "yesterday"}, "started='yesterday'"),
    ({"id": "r1\x1b[31m"}, r"id='r1\x1b[31m'"),
    ({"target": "../px8"}, "target='../px8'"),
    ({"build": {"torch": "2\x1b[31m"}}, "build={'torch': "),
    ({"build": "x"}, "build='x'"),
    ({"build": {"torch": 2}}, "build={'torch': 2}"),
    ({"clocks": 5}, "clocks=5"),
    ({"clocks": {"0": 5}}, "clocks={'0': 5}"),
    ({"clocks": {"0": {"sm_mhz": "fast"}}}, "clocks={'0': {'sm_mhz': 'fast'}}"),
    ({"clocks": {"0": {"power": 10**400}}}, "clocks={'0': {'power': 1000000"),
    ({"clocks": NESTED}, "clocks={'0': {'0': "),
    ({"clocks": {"copy_gb_s": {"cold": 1.0}}}, "copy_gb_s={'cold': 1.0}"),
    ({"ended": []}, "ended=[]"),
    ({"host": "a"}, "a run has no field 'host'"),
]
BAD = [("trial", TRIALS[0].to_dict() | change, named) for change, named in BAD_TRIALS]
BAD += [("run", dataclasses.asdict(RUN) | change, named) for change, named in BAD_RUNS]
LINES = [(json.dumps({kind: row}), named) for kind, row, named in BAD]
LINES += [
    (f'{{"trial":{DEEP}', "recursion depth"),
    ('{"trial": 5}', "this is {'trial': 5}"),
    ("[]", "this is []"),
    ("{}", "this is {}"),
    ("12", "this is 12"),
    ('{"row": {}}', "this is {'row': {}}"),
    ('{"run": 1, "trial": 2}', "this is {'run': 1, 'trial': 2}"),
    ('{"run": {"id": "r"}}', "it lacks "),
    ('{"trial": {"op": "all_gather_gemm"}}', "it lacks "),
    ("\x00\x00", "Expecting value"),
]


@pytest.mark.parametrize(("line", "named"), LINES, ids=[named for _, named in LINES])
def test_a_line_that_is_no_row_is_refused_with_its_field(
    line: str, named: str, tmp_path: Path, tftune: Tftune
) -> None:
    run = json.dumps({"run": dataclasses.asdict(RUN)})
    (tmp_path / "rows.jsonl").write_text(f"{run}\n\n{line}\n")
    done = tftune("trials import rows.jsonl --db a.db")
    (said,) = done.err.splitlines()
    assert done.code == 2 and said.startswith("error: line 3 of rows.jsonl is no whole row (")
    assert named in said and len(said) < 300
    assert not (tmp_path / "a.db").exists()  # nothing was there before


def test_a_run_that_would_not_read_back_is_refused(path: Path) -> None:
    with Store.open(path) as store:
        with pytest.raises(
            ValueError, match=r"clocks=\{'0': 'unknown'\} must give each GPU its readings"
        ):
            store.add_run(dataclasses.replace(RUN, clocks={"0": "unknown"}))
        assert store.runs() == []


OFTEN = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
ODD = (
    10**400, 2**63, 1e308, 5e-324, 0.004, 0, -0.0, True, "\ud800", "\0", "push", "hang", "final",
    "m=64,n=8,k=8,world=8", [], [1, 2.5], {}
)  # fmt: skip
ANY_TEXT = st.text(st.characters(), max_size=9)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.sampled_from(ODD),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(ANY_TEXT | st.just("variant"), inner, max_size=3)
    ),
    max_leaves=6,
)
NEAR = {str: ANY_TEXT, float: st.floats(0, 1e308), int: st.integers(0) | st.text("az", max_size=3)}
"""What often passes for a value of that type."""


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to every part of a row, and to one part more of each object."""
    if isinstance(value, dict):
        return [
            path,
            (*path, "failure"),
            *(place for name, part in value.items() for place in places(part, (*path, name))),
        ]
    inner = range(len(value)) if isinstance(value, list) else ()
    return [path, *((*path, index) for index in inner)]


def changed(draw: Any, row: dict[str, Any]) -> dict[str, Any]:
    """A copy of a row in which one or two parts are anything."""
    row = copy.deepcopy(row)
    for _ in range(draw(st.integers(1, 2))):
        *way, last = draw(st.sampled_from([place for place in places(row) if place]))
        part: Any = row
        for name in way:
            part = part[name]
        near = NEAR.get(type(part[last]) if isinstance(part, list) else type(part.get(last)), JSON)
        part[last] = copy.deepcopy(draw(JSON | near | near))
    return row


def read(tmp_path: Path, kind: str, row: dict[str, Any]) -> tuple[list[Run], list[Trial]]:
    """What a file of this one row gives: nothing where it was refused."""
    (file := tmp_path / "rows.jsonl").write_text(json.dumps({kind: row}))
    try:
        return read_rows(file)
    except StoreError as error:
        assert str(error).startswith(f"line 1 of {file} is no whole row") and "\n" not in str(error)
        return [], []


def as_text(run: Run) -> str:
    """Comparable where NaN is in it."""
    return json.dumps(dataclasses.asdict(run), sort_keys=True)


@OFTEN
@given(st.data(), st.sampled_from(TRIALS))
def test_any_trial_is_refused_or_reads_back(
    tmp_path: Path, empty: Path, data: Any, trial: Trial
) -> None:
    for found in read(tmp_path, "trial", changed(data.draw, trial.to_dict()))[1]:
        assert Trial.from_dict(found.to_dict()).id == found.id
        assert hash(found) == hash(copy.deepcopy(found))
        assert (
            not isinstance(found.outcome, Measurement)
            or found.outcome.interval_us[0] <= found.outcome.median_us
        )
        (database := tmp_path / "a.db").write_bytes(empty.read_bytes())
        with Store.open(database) as store:
            store.add_run(dataclasses.replace(RUN, id=found.run))
            store.add_trial(found)
            assert [stored.id for stored in store.trials()] == [found.id] and store.check() == []


@OFTEN
@given(st.data(), st.sampled_from([RUN, ENDED]))
def test_any_run_is_refused_or_reads_back(tmp_path: Path, empty: Path, data: Any, run: Run) -> None:
    for found in read(tmp_path, "run", changed(data.draw, dataclasses.asdict(run)))[0]:
        assert sentence(dataclasses.replace(found, target=RUN.target)).isprintable()
        (database := tmp_path / "a.db").write_bytes(empty.read_bytes())
        with Store.open(database) as store:
            store.add_run(found)
            assert [as_text(stored) for stored in store.runs()] == [as_text(found)]
            assert store.check() == []
