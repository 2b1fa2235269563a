"""The parts of a warm-up that need no ranks: what a choice says, and where it measures."""

from __future__ import annotations

import ast
import multiprocessing
import re
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tftune.confirm import bench as confirm_bench
from tftune.confirm.bench import Folder, Here, InChildren
from tftune.confirm.warm_up import decided
from tftune.db.target import Machine
from tftune.db.trial import Failure, Measurement, Outcome
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.chips import H200
from tftune.kernels.core.space import Config
from tftune.models.selection import Selection
from tftune.models.selector import Selector
from tftune.tuner.bench.shared_dir import Shared
from tftune.tuner.warm_up.order import Order
from tftune.tuner.warm_up.world import limit_s, patience_s

GATHER, PUSH = Config("bsp", form="gather"), Config("push", block_m=64)
SHAPE = AllGatherGemm(64, 3584, 8192, 8, "bf16", "m", "nk")
ORDER = Order(SHAPE, "graph", (GATHER,), (PUSH,), 1.0, 30.0, "h200x8", "run")
BEFORE = Selection(
    PUSH, "interpolated", "push was faster on 3 shapes", 10.0, 13.0, (1.1, 1.5), ((32, 3584, 8192),)
)
FULL = Failure("resources", "rank 1: OutOfMemoryError: out of memory")


def timed(us: float, bsp_us: float) -> Measurement:
    noise = (0.99, 1.0, 1.01) * 4
    return Measurement(tuple(us * part for part in noise), tuple(bsp_us * part for part in noise))


class TestDecided:
    def test_a_fused_config_with_its_figures(self) -> None:
        outcomes: dict[Config, Outcome] = {GATHER: timed(12.0, 12.0), PUSH: timed(10.0, 12.0)}
        found = decided(ORDER, outcomes, BEFORE)
        assert found.interval == pytest.approx((1.2, 1.2))
        assert found == Selection(
            PUSH,
            "measured",
            "measured here by tftune.warm_up: push takes 10.0 us and BSP 12.0 us, 1.20 times as "
            "fast (95 % interval 1.20 to 1.20) over 12 rounds",
            expected_us=10.0,
            bsp_us=12.0,
            interval=found.interval,
            near=((64, 3584, 8192),),
        )

    def test_the_figures_are_of_the_same_rounds(self) -> None:
        """Clocks drift, and BSP with them: its time over push's in each round, not of two
        medians."""
        bsp_us, us = (12.0, 13.2, 14.4, 15.6, 26.4, 9.6), (10.0, 10.0, 12.0, 12.0, 20.0, 8.0)
        found = decided(
            ORDER, {GATHER: Measurement(bsp_us, bsp_us), PUSH: Measurement(us, bsp_us)}, BEFORE
        )
        assert (found.config, found.source, found.expected_us) == (PUSH, "measured", 11.0)
        assert found.speedup == pytest.approx(1.25) and found.bsp_us == pytest.approx(11.0 * 1.25)
        assert found.interval == pytest.approx((1.2, 1.32))
        assert found.bsp_us != pytest.approx(13.8), "BSP's own median, of other rounds than push's"

    @pytest.mark.parametrize(
        ("other", "why"),
        [
            ({PUSH: timed(12.0, 12.0)}, "the best other config, push, is 1.00 times as fast"),
            ({PUSH: Failure("wrong", "x")}, "no other config could be measured (push: wrong)"),
            ({}, "no other config was tried"),
        ],
    )
    def test_bsp_and_why(self, other: dict[Config, Outcome], why: str) -> None:
        found = decided(ORDER, {GATHER: timed(12.0, 12.0), **other}, BEFORE)
        assert found.config == GATHER and found.source == "measured" and why in found.reason
        assert "BSP takes 12.0 us over 12 rounds" in found.reason
        assert (found.expected_us, found.bsp_us) == (12.0, 12.0)
        assert (found.speedup, found.interval) == (1.0, None)
        assert found.near == (SHAPE.sizes_key,)

    def test_without_bsp_the_answer_stays_and_says_so(self) -> None:
        found = decided(ORDER, {GATHER: FULL}, BEFORE)
        assert found == replace(BEFORE, reason=found.reason)
        assert found.reason.startswith("push was faster on 3 shapes; tftune.warm_up could not")
        assert "(1 resources)" in found.reason

    def test_what_failed_here_does_not_stay(self) -> None:
        found = decided(ORDER, {GATHER: FULL, PUSH: Failure("hang", "late")}, BEFORE)
        expected = Selection(GATHER, "fallback", found.reason)
        assert found == expected, "figures of push are not those of BSP"
        assert "push(block_m=64) failed" in found.reason


class TestHere:
    FAKE = Workspace(0, 2, "cuda", 4, torch.device("cuda", 1), None, 0, 0, None, None, 4096, None)

    def test_emulated_ranks_are_no_machine(self) -> None:
        here = Here.of(replace(self.FAKE, arch="interpreter"), Selector())
        assert (here.target, here.chip, here.cache_bytes) == ("emulatedx2", None, 0) and here.triton

    def test_the_machine_that_the_selector_was_told(self) -> None:
        selector = Selector(machine=Machine("h200x8", "sm_90", {"triton": "3.6.0"}))
        here = Here.of(self.FAKE, selector)
        assert (here.target, here.chip, here.triton) == ("h200x8", H200, "3.6.0")
        assert here.cache_bytes == H200.cache_bytes

    def test_a_gpu_without_constants_says_its_own_cache(self, monkeypatch: Any) -> None:
        monkeypatch.setattr(confirm_bench, "_cache_bytes", lambda device: 123)
        here = Here.of(self.FAKE, Selector(machine=Machine("2 x Other", "sm_80", {})))
        assert (here.target, here.chip, here.cache_bytes) == ("2 x Other", None, 123)
        assert here.triton == ""

    def test_a_workspace_without_a_gpu_in_sight(self, monkeypatch: Any) -> None:
        monkeypatch.setattr(confirm_bench, "machine_here", lambda: None)
        with pytest.raises(ValueError, match=r"no GPU can be seen.*run `tftune doctor`"):
            Here.of(self.FAKE, Selector())

    SHOWN = (None, "1"), ("", "1"), ("4,6", "6"), ("a, b", "b")

    @pytest.mark.parametrize(("shown", "gpu"), SHOWN)
    def test_children_see_the_gpus_of_the_ranks(
        self, shown: str | None, gpu: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if shown is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
        assert confirm_bench._gpu(self.FAKE.device) == gpu


def waiting(path: Path, supervisor: Any = None) -> InChildren:
    """A bench in a folder that rank 0 has made; of rank 0 itself where it has a supervisor."""
    found = InChildren.__new__(InChildren)
    ranks: Any = SimpleNamespace(by_first=lambda act: path)
    found._folder, found._supervisor, found._asked = Folder(ranks), supervisor, 0
    return found


class TestWaiting:
    def test_a_rank_waits_no_longer_than_rank_0_lives(self) -> None:
        owned = Shared.make()
        bench = waiting(owned.path)
        assert bench._folder.owner_lives()
        owned.remove()
        assert not bench._folder.owner_lives()
        began = time.monotonic()
        with pytest.raises(RuntimeError, match=r"rank 0 ended in tftune\.warm_up"):
            bench.measure(ORDER)
        assert time.monotonic() - began < 5

    def test_a_second_look_at_a_shape_is_answered_anew(self, tmp_path: Path) -> None:
        """Rank 1, asked twice about one shape, does not take the first reply for the second."""
        told: list[dict[Config, Outcome]] = [{GATHER: timed(10, 10)}, {GATHER: FULL}]

        supervisor = SimpleNamespace(confirm=lambda order: (told[first._asked - 1], ()))
        owned = Shared.make()
        try:
            first, other = waiting(owned.path, supervisor), waiting(owned.path)
            for expected in told:
                assert first.measure(ORDER)[0] == expected
                assert other.measure(ORDER)[0] == expected
        finally:
            owned.remove()

    def test_it_waits_longer_than_any_order_may_take(self) -> None:
        every_config_ends_a_world = 3 * limit_s(ORDER)
        assert patience_s(ORDER) > every_config_ends_a_world
        assert limit_s(ORDER) > ORDER.budget_s + 2 * ORDER.deadline_s

    def test_a_daemon_is_told_what_to_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        confirm_bench._refuse_daemon()
        process: Any = multiprocessing.current_process()
        monkeypatch.setitem(process._config, "daemon", True)
        with pytest.raises(ValueError, match="start the ranks with daemon=False"):
            confirm_bench._refuse_daemon()


def test_the_page_s_example_is_python_of_a_few_lines(root: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (root / "docs/warm-up.md").read_text(), re.DOTALL)
    tree = ast.parse(code)
    assert len(tree.body) <= 10
    calls = {ast.unparse(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    needed = "bind", "warm_up", "AllGatherGemm", "Workspace.create"
    assert {f"tftune.{name}" for name in needed} <= calls
