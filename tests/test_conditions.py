"""The line about a run's machine: clocks of both vendors, what is unknown, and the doubts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tftune.db.trial import Run
from tftune.report import run_health as conditions


def gpu(
    sm_mhz: float | None = 1980.0, celsius: float = 31.0, watts: float | None = 120.0
) -> dict[str, Any]:
    return {
        "sm_mhz": sm_mhz,
        "memory_mhz": 3201.0,
        "max_sm_mhz": 1980.0,
        "celsius": celsius,
        "watts": watts,
        "limit_watts": 700.0,
    }


COLD = {"cold": 3350.0, "warm": 4400.0}
RUN = Run(
    "r1",
    "h200x2",
    "node",
    {},
    "2026-11-21T01:00:00Z",
    {"0": gpu(), "1": gpu(celsius=35.0), "copy_gb_s": COLD},
)
ENDED = replace(
    RUN, ended={"0": gpu(1965.0, 61.0, 310.5), "1": gpu(1905.0, 58.0), "copy_gb_s": COLD}
)


def test_the_slowest_clock_and_the_hottest_gpu_at_both_ends() -> None:
    assert conditions.sentence(ENDED) == (
        "at the first trial SM 1980 MHz, memory 3201 MHz, 35 C, 120 W; after the last SM 1905 "
        "MHz, memory 3201 MHz, 61 C, 310 W; "
        "a copy reached 3350 GB/s cold and 4400 GB/s warm"
    )
    assert conditions.doubts(ENDED) == []


def test_a_search_that_was_stopped_has_one_end() -> None:
    assert conditions.sentence(RUN).startswith("at the first trial SM 1980 MHz")
    assert "after" not in conditions.sentence(RUN)


@pytest.mark.parametrize(("mhz", "said"), [(1783.0, False), (1781.0, True)])
def test_a_clock_that_fell_by_more_than_a_tenth_is_named(mhz: float, said: bool) -> None:
    fell = replace(ENDED, ended=ENDED.ended | {"1": gpu(mhz)})
    assert bool(conditions.doubts(fell)) is said
    if said:
        assert conditions.sentence(fell).endswith(
            "; the SM clock of GPU 1 fell by 10 %, from 1980 to 1781 MHz: let it cool and search "
            "again"
        )


def test_caches_that_were_not_cold_are_doubted() -> None:
    warm = replace(ENDED, ended=ENDED.ended | {"copy_gb_s": {"cold": 5500.0, "warm": 6000.0}})
    (doubt,) = conditions.doubts(warm)
    assert doubt.startswith("caches are not cold: a rotated copy reached 5500 GB/s")
    assert doubt in conditions.sentence(warm)


@pytest.mark.parametrize("clocks", [{}, {"0": {}}, {"0": {"sm_mhz": None, "power": "N/A"}}])
def test_what_no_tool_tells_is_unknown(clocks: dict[str, Any]) -> None:
    assert conditions.sentence(Run("r", "mi300x8", "node", {}, "", clocks)) == (
        "clocks and temperature unknown: neither nvidia-smi nor amd-smi told them"
    )


def test_a_number_that_one_gpu_does_not_tell_is_left_out() -> None:
    run = replace(RUN, clocks={"0": gpu(None, watts=None), "1": gpu(1900.0, watts=None)})
    assert conditions.sentence(run) == "at the first trial SM 1900 MHz, memory 3201 MHz, 31 C"


def test_amd_numbers_are_found_where_its_tool_has_them() -> None:
    def amd(mhz: int) -> dict[str, Any]:
        def value(number: float) -> dict[str, Any]:
            return {"value": number, "unit": "x"}

        clock = {
            "gfx_0": {"clk": value(mhz), "max_clk": value(2100)},
            "mem_0": {"clk": value(1300)},
        }
        return {
            "clock": clock,
            "temperature": {"edge": "N/A", "hotspot": value(48)},
            "power": {"socket_power": value(260)},
        }

    run = Run("r", "mi300x1", "node", {}, "", {"0": amd(2100)}, {"0": amd(1500)})
    assert conditions.sentence(run) == (
        "at the first trial SM 2100 MHz, memory 1300 MHz, 48 C, 260 W; after the last SM 1500 "
        "MHz, memory 1300 MHz, 48 C, 260 W; "
        "the SM clock of GPU 0 fell by 29 %, from 2100 to 1500 MHz: let it cool and search again"
    )
