"""The compile pool: nothing to do for libraries, a config's own failure, a compiler that hangs or
dies."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import stand_ins
import traces

from tftune.db.trial import Failure
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.chips import H200, MI300X, Chip
from tftune.kernels.core.space import Config
from tftune.tuner.bench import compile_pool as compiler
from tftune.tuner.bench.compile_pool import CompilePool

SHAPE = AllGatherGemm(64, 256, 512, 2)
BSP, _, PUSH, *_, PULL = SPACE.defaults(SHAPE, H200)


def variant_of(config: Config, **knobs: int) -> Config:
    return Config(config.variant, **dict(config.knobs) | knobs)


Opened = Callable[..., CompilePool]


@pytest.fixture
def opened() -> Iterator[Opened]:
    """opened(deadline_s, chip): a pool of one worker, closed at the end."""
    pools = list[CompilePool]()

    def open_one(deadline_s: float = 120.0, chip: Chip = H200) -> CompilePool:
        pools.append(CompilePool(chip, deadline_s, workers=1))
        return pools[-1]

    yield open_one
    for pool in pools:
        pool.close()


@pytest.fixture
def stood_in(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """The same, whose compiler hangs for some configs and dies for others."""
    monkeypatch.setattr(compiler, "compile_one", stand_ins.compiler)
    return opened


def test_a_kernel_compiles_once_and_a_library_call_not_at_all(opened: Opened) -> None:
    pool = opened()
    pool.ahead(SHAPE, [BSP, PUSH, PUSH])
    pool.ahead(replace(SHAPE, m=63), [PUSH])  # one binary serves every M
    assert len(pool._jobs) == 1
    assert pool.failure(SHAPE, BSP) is None and pool.failure(SHAPE, PUSH) is None


def test_too_much_shared_memory_is_a_failure_that_says_how_much(opened: Opened) -> None:
    failure = opened(chip=replace(H200, shared_bytes=1024)).failure(SHAPE, PULL)
    assert isinstance(failure, Failure) and failure.kind == "resources"
    assert "h200 has 1024" in failure.text


def test_on_amd_a_kernel_that_spills_is_refused_and_one_that_does_not_is_none() -> None:
    """A tile that others publish, with 8 waves, and half of it; the space's own rule refuses the
    first."""
    large = AllGatherGemm(8192, 3584, 8192, 8)
    push = next(config for config in SPACE.defaults(large, MI300X) if config.variant == "push")
    wide, half = (
        variant_of(push, block_m=256, block_n=columns, block_k=64, num_warps=8, num_stages=2)
        for columns in (256, 128)
    )
    assert "would spill" in (SPACE.why_invalid(large, wide, MI300X) or "")
    with pytest.raises(
        compiler.ResourcesError,
        match=r"it spills: each thread keeps \d+ bytes of registers in scratch memory",
    ):
        compiler.compile_one(large, wide, MI300X)
    compiler.compile_one(large, half, MI300X)


def test_a_compiler_that_hangs_is_killed_at_its_deadline(stood_in: Opened) -> None:
    pool = stood_in(1.0)
    began = time.monotonic()
    failure = pool.failure(SHAPE, variant_of(PUSH, num_stages=2))
    assert isinstance(failure, Failure) and failure.kind == "compile" and "1 s" in failure.text
    assert time.monotonic() - began < 20
    assert pool.failure(SHAPE, variant_of(PUSH, num_stages=4)) is None, "the pool starts again"


def test_no_compiler_outlives_a_killed_supervisor(tmp_path: Path) -> None:
    mark = f"{tmp_path}"
    command = [sys.executable, stand_ins.__file__]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env=os.environ | {traces.MARK: mark}
    ) as supervisor:
        assert supervisor.stdout is not None and supervisor.stdout.readline() == b"compiling\n"
        until = time.monotonic() + 10
        while len(found := list(traces.processes(mark))) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        supervisor.kill()
        assert len(found) >= 2, "the supervisor and its compiler"
    until = time.monotonic() + 10
    while (orphans := list(traces.processes(mark))) and time.monotonic() < until:
        time.sleep(0.02)
    assert orphans == []


def test_a_compiler_that_dies_is_blamed_on_the_config_that_kills_it_alone(stood_in: Opened) -> None:
    pool = stood_in(30.0)
    fatal, harmless = variant_of(PUSH, num_stages=3), variant_of(PUSH, num_stages=4)
    pool.ahead(SHAPE, [fatal, harmless])
    assert pool.failure(SHAPE, harmless) is None
    failure = pool.failure(SHAPE, fatal)
    assert isinstance(failure, Failure) and "died" in failure.text


def test_a_compiler_that_died_unasked_leaves_the_next_configs_theirs(stood_in: Opened) -> None:
    pool = stood_in(30.0)
    fatal, harmless, other = (variant_of(PUSH, num_stages=count) for count in (3, 4, 5))
    pool.ahead(SHAPE, [fatal])
    pool.settle(30.0)
    pool.ahead(SHAPE, [other])
    pool.settle(30.0)
    assert pool.failure(SHAPE, harmless) is None and pool.failure(SHAPE, other) is None
    pool.ahead(SHAPE, [fatal])
    pool.settle(30.0)
    assert pool.failure(SHAPE, harmless) is None


def test_who_waits_behind_a_compiler_that_hangs_is_not_blamed(stood_in: Opened) -> None:
    """One worker, and a pool that calls the next job running before anybody has taken it."""
    pool = stood_in(1.0)
    hanging, harmless = variant_of(PUSH, num_stages=2), variant_of(PUSH, num_stages=4)
    pool.ahead(SHAPE, [hanging, harmless])
    assert pool.failure(SHAPE, harmless) is None
    began = time.monotonic()
    failure = pool.failure(SHAPE, hanging)
    assert isinstance(failure, Failure) and "1 s" in failure.text
    assert time.monotonic() - began < 0.5, "it was ended already, and is not tried again"
