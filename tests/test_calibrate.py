"""Calibration: the formulas on made answers, the questions on emulated ranks, and the file that a
search reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tftune.db.calibration_file import calibrated, default_path, write_chip
from tftune.db.target import Target
from tftune.kernels.core.chips import H200
from tftune.kernels.device import calibration_kernels as probe
from tftune.kernels.runtime.compile import KernelSource, gpu_target
from tftune.pipeline.bench_factory import find_target
from tftune.tuner.bench.sandbox import Broken
from tftune.tuner.calibration import calibrate
from tftune.tuner.calibration.calibrate import Sizes
from tftune.tuner.calibration.calibration_rank import COLUMNS

TARGET = Target.parse("h200x4")
SIZES = Sizes()


def answers(method: str, *arguments: Any) -> list[Any]:
    """Two ranks that reach what kernels/core/chips.py says of H200, the second 1 % less."""
    chip = H200
    exact = {
        "copied": lambda size: 2 * size / chip.rates.hbm_bytes_per_us,
        "gemm": lambda m, n, k: max(
            2 * m * n * k / chip.rates.matrix_flops_per_us,
            2 * (m * k + k * n + m * n) / chip.rates.hbm_bytes_per_us / 0.81,
        ),
        "polled": lambda: chip.rates.poll_us,
        "signalled": lambda: chip.links.signal_us,
        "flown": lambda: chip.links.flag_us,
        "load": lambda size, remote: 0.6 + remote * chip.links.remote_load_us,
    }
    if method == "stored":
        programs, _, blocks = arguments
        us = max(
            blocks * chip.rates.block_us, programs * blocks * 16_384 / chip.links.links_bytes_per_us
        )
        return [(us, 16_384), (1.01 * us, 16_384)]
    if method == "launched":
        return [(1.5, 12.0 + 22.0 * (arguments[0] - 1))] * 2
    if method == "gathered":
        large = arguments[0] / chip.links.gather_bytes_per_us if arguments[0] == SIZES.large else 0
        return [((2 if large else 1) * 19.3 * 7 / 11 + large, 60.0)] * 2
    if method == "copied_by_engine":
        large = arguments[0] / chip.links.engine_bytes_per_us if arguments[0] == SIZES.large else 0
        return [(chip.links.engine_us + large, chip.links.engine_host_us)] * 2
    us = exact[method](*arguments)
    return [us, 1.01 * us]


@pytest.mark.parametrize(
    "question", (*calibrate.QUESTIONS, *calibrate.FURTHER), ids=lambda question: question.__name__
)
def test_what_a_machine_reaches_becomes_its_constants(question: calibrate.Question) -> None:
    found = question(answers, H200, 4, SIZES)
    assert found
    for name, value in found.items():
        assert value == pytest.approx(H200.known(name), rel=0.03), name


def test_a_question_that_ends_the_world_or_makes_no_sense_keeps_the_constants() -> None:
    def broken(method: str, *arguments: Any) -> list[Any]:
        raise Broken("hang", "ranks [1] of 2 had not ended copied after 20.0 s")

    assert (
        calibrate._answered(calibrate.memory, broken, H200, 2, SIZES)
        == "ranks [1] of 2 had not ended copied after 20.0 s"
    )
    nearer = calibrate._answered(
        calibrate.loads, lambda method, size, remote: [1.0 - remote / 2], H200, 2, SIZES
    )
    assert nearer == "its answer is no time or rate: remote_load_us=-0.5"


def test_every_question_is_answered_by_ranks() -> None:
    """Two emulated ranks run every probe; their times mean nothing, so that a difference of two may
    come out negative."""
    found = dict(calibrate.calibrate(Target.parse("mi300x2"), emulated=True))
    assert list(found) == [q.__name__ for q in (*calibrate.QUESTIONS, *calibrate.FURTHER)]
    differences = {"loads", "launches", "large_collective", "copy_engines"}
    silent = {name for name, answer in found.items() if isinstance(answer, str)}
    assert silent <= differences, found
    assert all("no time or rate" in str(found[name]) for name in silent)


@pytest.mark.parametrize("arch", ["sm_90", "gfx942"])
def test_a_block_is_stored_in_words_of_16_bytes(arch: str) -> None:
    types = {
        "source": "i64",
        "payload": "i64",
        "payload_bases": "*i64",
        "rank": "i32",
        "blocks": "i32",
        "slots": "i32",
    }
    source = KernelSource(
        probe.store_blocks,
        types,
        dict(WORLD=8, PEERS=7, ROWS=8, COLUMNS=COLUMNS),
        (),
        {"num_warps": 8},
    )
    assembly = source.compile(gpu_target(arch)).asm
    assert "st.global.v4.b32" in assembly.get("ptx", "") or "global_store_dwordx4" in assembly.get(
        "amdgcn", ""
    )


def test_a_search_reads_what_a_calibration_wrote(tmp_path: Path) -> None:
    path = tmp_path / default_path(TARGET)
    write_chip(
        path,
        TARGET,
        {"hbm_bytes_per_us": 4.1234e6, "flag_us": 1.4},
        {"links": "late"},
        {"triton": "3.6.0"},
        "2026-11-21T08:00:00Z",
    )
    found = find_target("model", "h200x4", path)
    assert found.name == "h200x4"
    assert found.chip.rates.hbm_bytes_per_us == 4.123e6
    assert found.chip.links.flag_us == 1.4
    assert found.chip.rates.poll_us == H200.rates.poll_us
    assert json.loads(path.read_text())["kept"] == {"links": "late"}
    assert find_target("model", "h200x4").chip == H200


@pytest.mark.parametrize(
    ("text", "target", "sentence"),
    [
        ("{", "h200x4", r"is no file of a calibration \(JSONDecodeError.*run `tftune calibrate`"),
        (
            '{"target": "h200x8", "constants": {}}',
            "h200x4",
            "was measured on h200x8, and this is h200x4",
        ),
        (
            '{"target": "h200x4", "constants": {"units": 3}}',
            "h200x4",
            "has units=3, which is no constant",
        ),
        (
            '{"target": "h200x4", "constants": {"flag_us": 0}}',
            "h200x4",
            "has flag_us=0, which is no constant",
        ),
    ],
)
def test_a_wrong_file_is_a_sentence(tmp_path: Path, text: str, target: str, sentence: str) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(ValueError, match=sentence):
        calibrated(Target.parse(target), tmp_path / "c.json")


def test_no_file_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot read .*No such file.*tftune calibrate"):
        calibrated(TARGET, tmp_path / "c.json")
