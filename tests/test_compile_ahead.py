"""Compiling ahead without a pool: each binary once, in Triton's cache; what fails is told later."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_gather_gemm.host import source
from tftune.kernels.all_gather_gemm.space import SPACE
from tftune.kernels.core.chips import H200
from tftune.kernels.core.space import Config
from tftune.kernels.runtime.compile import gpu_target
from tftune.kernels.runtime.triton_cache import _of_user
from tftune.tuner.bench import compile_ahead as module
from tftune.tuner.bench.compile_ahead import Compilers, compile_ahead, jobs

SHAPE = AllGatherGemm(64, 256, 512, 2)
BSP, PUSH = SPACE.defaults(SHAPE, H200)[0], SPACE.defaults(SHAPE, H200)[2]


def kernels(cache: Path) -> set[str]:
    return {path.name for path in cache.rglob("*.cubin")}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's, beside one that torch's compiler or an engine named for this rank alone."""
    monkeypatch.setattr("tftune.kernels.runtime.triton_cache._CACHE", str(tmp_path / "user"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "rank"))
    monkeypatch.setattr(module, "COMPILERS", Compilers())
    return tmp_path / "user"


def test_each_binary_is_compiled_once_whatever_its_m() -> None:
    others = [(replace(SHAPE, m=96), PUSH), (replace(SHAPE, n=128), PUSH)]
    pairs = [(SHAPE, BSP), (SHAPE, PUSH), *others]
    found = jobs(pairs, H200)
    assert [(shape.n, config) for shape, config, _, _ in found] == [(256, PUSH), (128, PUSH)]
    assert jobs([(SHAPE, Config("push", block_m=3))], H200) == []


def test_kernels_are_in_the_cache_afterwards(cache: Path) -> None:
    wanted = jobs([(SHAPE, PUSH), (replace(SHAPE, n=128), PUSH)], H200)
    compile_ahead(wanted, workers=2)
    assert kernels(cache) == {"push.cubin"} and len(list(cache.rglob("*.cubin"))) == 2


def test_a_rank_finds_them_whatever_the_compiler_of_torch_named(cache: Path) -> None:
    compile_ahead(jobs([(SHAPE, PUSH)], H200), workers=1)
    compiled = {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()}
    source(SHAPE, SPACE.complete(PUSH), "cuda").compile(gpu_target("sm_90"))
    assert compiled == {
        path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()
    }
    assert os.environ["TRITON_CACHE_DIR"] == str(cache.with_name("rank"))
    assert not cache.with_name("rank").exists()


@pytest.mark.parametrize("folder", ["triton/1", "mine"])
def test_a_folder_of_one_gpu_is_not_taken_for_the_user_s(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor.runtime.cache_dir_utils import cache_dir, triton_cache_dir

    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    assert triton_cache_dir(1) == f"{cache_dir()}/triton/1"
    monkeypatch.setenv("TRITON_CACHE_DIR", f"{cache_dir()}/{folder}")
    assert _of_user() == (f"{cache_dir()}/mine" if folder == "mine" else None)


def test_what_cannot_be_compiled_raises_nothing_and_stops_no_other(cache: Path) -> None:
    impossible = (SHAPE, Config("push", **dict(PUSH.knobs) | {"num_warps": 3}), H200, 0)
    compile_ahead([impossible, *jobs([(SHAPE, PUSH)], H200)], workers=1)
    assert kernels(cache) == {"push.cubin"}


def test_compilers_that_take_too_long_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def slow() -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(["sleep", "60"], stdin=pipe, stdout=pipe))
        return started[-1]

    monkeypatch.setattr(module, "COMPILERS", Compilers())

    monkeypatch.setattr(module, "_child", slow)
    began = time.monotonic()
    compile_ahead(jobs([(SHAPE, PUSH), (replace(SHAPE, n=128), PUSH)], H200), 4, limit_s=0.2)
    assert time.monotonic() - began < 10
    assert [child.poll() for child in started] == [-9, -9]


def test_compilers_live_on_and_one_that_died_is_replaced(cache: Path) -> None:
    wanted = jobs([(SHAPE, PUSH), (replace(SHAPE, n=128), PUSH)], H200)
    compile_ahead(wanted[:1], workers=2)
    (first,) = module.COMPILERS._children
    compile_ahead(wanted, workers=2)
    assert module.COMPILERS._children[0] is first and first.poll() is None
    module.COMPILERS._children[0].kill()
    compile_ahead(jobs([(replace(SHAPE, n=64), PUSH)], H200), workers=2)
    assert len(list(cache.rglob("*.cubin"))) == 3
    module.COMPILERS.end()


def test_nothing_to_compile_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    monkeypatch.setattr(module, "_child", started.append)
    compile_ahead([], workers=8)
    assert started == []
