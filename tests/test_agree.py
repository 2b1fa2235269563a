"""benchmarks/agree.py over made rows of two searches: tie sets that meet or miss, ratios that agree
or not, and what is left out."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from tftune.db.store import Store, write_rows
from tftune.db.trial import Failure, Measurement, Run, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.space import Config

SCRIPT = Path(__file__).resolve().parent.parent / "benchmarks/agree.py"
SMALL, LARGE = (AllGatherGemm(m=m, n=3584, k=8192, world=4) for m in (1, 64))
BSP = Config("bsp", form="gather_copy")
A, B, C = (Config("push", block_m=block) for block in (16, 32, 64))
RUN = Run("r1", "h200x4", "node", {}, "2026-11-21T01:00:00Z", {})
STEADY = (0.999, 1.0, 1.001) * 3


@pytest.fixture(scope="module")
def agree() -> ModuleType:
    spec = importlib.util.spec_from_file_location("agree", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["agree"] = module
    spec.loader.exec_module(module)
    return module


def row(
    config: Config,
    speedup: float,
    *,
    bsp_us: float = 20.0,
    noise: tuple[float, ...] = STEADY,
    **changes: object,
) -> Trial:
    """Rounds in which BSP takes `bsp_us`; those with the same `bsp_us` are the same rounds."""
    times = Measurement(
        tuple(bsp_us / speedup * part for part in noise), (bsp_us,) * len(noise), 1e-4
    )
    made = Trial(
        SMALL, config, "graph", "h200x4", "node", "r1", "k1", times, "final", "2026-11-21T02:00:00Z"
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def group(bsp_us: float, **speedups: float) -> list[Trial]:
    """Final rows of one group: BSP and the named configs."""
    return [
        row(BSP, 1.0, bsp_us=bsp_us),
        *(
            row({"a": A, "b": B, "c": C}[name], ratio, bsp_us=bsp_us)
            for name, ratio in speedups.items()
        ),
    ]


def test_searches_agree_where_their_tie_sets_meet(agree: ModuleType) -> None:
    (found,) = agree.compare(
        group(20.0, a=1.500, b=1.495, c=1.3), group(25.0, a=1.2, b=1.5, c=1.495)
    )
    assert (found.one.trial.config, found.other.trial.config) == (A, B)
    assert found.one.ties == {A, B} and found.other.ties == {B, C}
    assert found.agreed and (found.configs, found.within) == (3, 1)


def test_searches_that_find_different_winners_disagree(agree: ModuleType) -> None:
    (found,) = agree.compare(group(20.0, a=1.5, b=1.4), group(25.0, a=1.4, b=1.5))
    assert not found.agreed and (found.configs, found.within) == (2, 0)
    assert agree.result([found]) == "RESULT agree places=1 agreed=0 configs=2 within=0"


@pytest.mark.parametrize(
    ("other", "within"),
    [(1.5 * 1.029, True), (1.5 / 1.029, True), (1.5 * 1.031, False), (1.5 / 1.031, False)],
)
def test_steady_ratios_agree_within_three_percent(
    agree: ModuleType, other: float, within: bool
) -> None:
    assert agree.agree(row(A, 1.5), row(A, other)) is within


def test_noisy_ratios_agree_within_their_joint_interval(agree: ModuleType) -> None:
    """Half-widths of about 10 % each make 14 % together; one alone makes 10 %."""
    noise = (0.9, 0.95, 1.0, 1.05, 1.1) * 2
    noisy = row(A, 1.5, noise=noise)
    assert agree.agree(noisy, row(A, 1.5 * 1.13, noise=noise)) is True
    assert agree.agree(noisy, row(A, 1.5 * 1.17, noise=noise)) is False
    assert agree.agree(noisy, row(A, 1.5 * 1.13)) is False


def test_what_cannot_be_compared_is_not_counted(agree: ModuleType) -> None:
    assert agree.agree(row(BSP, 1.0), row(BSP, 1.0)) is None
    assert agree.agree(row(A, 1.0), row(A, 1.0, code="k2")) is None
    assert agree.agree(row(A, 1.0, outcome=Measurement((1.0,))), row(A, 1.0)) is None
    failed = row(B, 1.0, outcome=Failure("hang", "late"))
    (found,) = agree.compare([*group(20.0, a=1.5), failed], group(25.0, a=1.5, b=1.2))
    assert (found.configs, found.within) == (1, 1)


def test_rows_of_the_search_count_where_final_ones_are_not_of_both(agree: ModuleType) -> None:
    early = {"stage": "search", "created": "2026-11-21T01:30:00Z"}
    one = [*group(20.0, a=1.5, b=1.2), row(B, 1.3, **early), row(C, 1.2, **early)]
    other = [*group(25.0, a=1.5), row(B, 1.3, **early), row(C, 1.4, **early)]
    (found,) = agree.compare(one, other)
    assert (found.configs, found.within) == (3, 2)


def test_a_place_that_one_search_did_not_end_is_left_out(agree: ModuleType) -> None:
    late = row(B, 1.2, stage="search", created="2026-11-21T03:00:00Z")
    assert list(agree.compare([*group(20.0, a=1.5), late], group(25.0, a=1.5))) == []
    assert list(agree.compare([row(A, 1.5)], group(25.0, a=1.5))) == []
    assert (
        list(
            agree.compare(
                group(20.0, a=1.5), [replace(trial, mode="eager") for trial in group(25.0, a=1.5)]
            )
        )
        == []
    )


def test_of_a_config_measured_twice_the_newer_row_counts(agree: ModuleType) -> None:
    old = [replace(trial, created="2026-11-21T01:00:00Z") for trial in group(19.0, a=1.1, b=1.5)]
    (found,) = agree.compare([*old, *group(20.0, a=1.5, b=1.1)], group(25.0, a=1.5, b=1.1))
    assert found.one.trial.config == A and found.agreed and found.within == 2


def test_the_script_reads_databases_and_exported_rows(tmp_path: Path) -> None:
    one = [
        *group(20.0, a=1.5, b=1.2),
        *(replace(trial, shape=LARGE) for trial in group(21.0, a=1.2)),
    ]
    other = [
        *group(25.0, a=1.5, b=1.4),
        *(replace(trial, shape=LARGE) for trial in group(26.0, b=1.2)),
    ]
    with Store.open(tmp_path / "one.db") as store:
        store.add_run(RUN)
        for trial in one:
            store.add_trial(trial)
    write_rows(tmp_path / "other.jsonl", [RUN], other)
    command = [sys.executable, SCRIPT, tmp_path / "one.db", tmp_path / "other.jsonl"]
    lines = subprocess.run(command, text=True, capture_output=True, check=True).stdout.splitlines()
    assert (
        lines[2]
        == f"| {SMALL} | graph | push 1.500 (tie of 1) | push 1.500 (tie of 1) | yes | 2 | 1 |"
    )
    assert lines[-1] == "RESULT agree places=2 agreed=1 configs=2 within=1"
    elsewhere = subprocess.run(
        [*command, "--target", "h200x8"], text=True, capture_output=True, check=True
    ).stdout
    assert elsewhere.splitlines()[-1] == "RESULT agree places=0 agreed=0 configs=0 within=0"
