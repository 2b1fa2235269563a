"""The self-test of cold caches: what it makes of fake timings, and which copies it has timed."""

from __future__ import annotations

from typing import Any

import pytest

from tftune.kernels.core.chips import H200, MI300X
from tftune.tuner.bench import cache_selftest as selftest
from tftune.tuner.bench import clock
from tftune.tuner.bench.cache_selftest import CopyRates, copy_rates


def test_memory_speed_below_cache_speed_is_cold() -> None:
    assert CopyRates(3.4e6, 4.4e6).why_not_cold(H200) is None
    assert CopyRates(3.8e6, 9.0e6).why_not_cold(MI300X) is None
    assert CopyRates(1.0999 * H200.rates.hbm_bytes_per_us, 9e6).why_not_cold(H200) is None


def test_more_than_memory_gives_is_not_cold() -> None:
    why = CopyRates(4.7e6, 6.0e6).why_not_cold(H200)
    reached = "a rotated copy reached 4700 GB/s, and the memory of h200 gives 4250"
    assert why is not None and f"caches are not cold: {reached}" in why


@pytest.mark.parametrize("warm", [3.4e6, 3.5e6])
def test_without_a_drop_nothing_is_proven(warm: float) -> None:
    why = CopyRates(3.4e6, warm).why_not_cold(H200)
    reached = "a rotated copy reached 3400 GB/s and one that fits the cache 3"
    assert why is not None and f"not proven: {reached}" in why


def test_stored_rates_read_back() -> None:
    assert CopyRates.of_gb_s(CopyRates(3_412_345.0, 4.4e6).gb_s) == CopyRates(3_412_300.0, 4.4e6)


def test_the_cold_copies_rotate_past_the_cache_and_the_warm_one_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch = pytest.importorskip("torch")
    cache = 3 * 8 * 1000
    graphs: list[Any] = []

    def captured(call: Any, operands: Any) -> Any:
        graphs.append((call, operands))
        return len(graphs)

    def rounds(captured: Any, count: int, start_together: Any, agree: Any) -> list[list[float]]:
        assert captured == [1, 2] and count == selftest.ROUNDS
        return [[2.0, 9.0, 2.0], [1.0, 1.0, 9.0]]

    monkeypatch.setattr(clock, "GraphCall", captured)
    monkeypatch.setattr(clock, "graph_rounds", rounds)
    found = copy_rates(cache, torch.device("cpu"), lambda: None)
    assert found == CopyRates(cache / 3 / 2.0, cache / 3 / 1.0)
    (call, cold), (_, warm) = graphs
    touched = [
        {source.data_ptr() for source, _, _ in operands} | {c.data_ptr() for _, _, c in operands}
        for operands in (cold, warm)
    ]
    assert len(cold) == len(warm) == clock.copies(cache // 3, cache)
    assert [len(places) for places in touched] == [2 * len(cold), 2]
    source, _, result = cold[1]
    assert len(cold) * (source.nbytes + result.nbytes) > 3 * cache
    assert warm[0][0].nbytes + warm[0][2].nbytes <= cache / 3
    call(source, None, result)
    assert bool((result == -source).all())
