"""Emulated ranks: results by rank, shared heaps, and an end to every job: a hang, an error and a
crash leave no process behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace

PAYLOAD_BYTES = 10_000


def meet(workspace: Workspace, word: str) -> tuple[str, int, int, list[int]]:
    """Each rank writes its number into the next rank's payload; the collective is a barrier."""
    import torch
    import torch.distributed as dist

    following = (workspace.rank + 1) % workspace.world
    workspace.owner[following][workspace.payload - workspace.control] = 10 + workspace.rank
    heard = [torch.zeros(1, dtype=torch.int64) for _ in range(workspace.world)]
    dist.all_gather(heard, torch.tensor([workspace.rank]), group=workspace.group)
    assert os.environ["TRITON_INTERPRET"] == "1" and workspace.arch == "interpreter"
    written = int(workspace.payload_tensor[0])
    return word, written, workspace.generation_bytes, [int(rank) for rank in heard]


def look(workspace: Workspace) -> tuple[str, list[str]]:
    """The folder of the heaps, which `run` names to its ranks, and the heaps in it."""
    return sys.argv[1], sorted(path.name for path in Path(sys.argv[1]).glob("heap-*"))


def leave_pid(folder: Path, rank: int) -> None:
    (folder / f"pid-{rank}").write_text(str(os.getpid()))


def hang(workspace: Workspace, folder: Path) -> None:
    leave_pid(folder, workspace.rank)
    while workspace.rank == 1:
        time.sleep(0.01)


def fail(workspace: Workspace, folder: Path) -> None:
    """Rank 0 raises while rank 1 would wait for ever."""
    leave_pid(folder, workspace.rank)
    while not (folder / "pid-1").exists() or workspace.rank == 1:
        time.sleep(0.01)
    raise ValueError("rank 0 cannot go on")


def crash(workspace: Workspace, folder: Path) -> None:
    leave_pid(folder, workspace.rank)
    os._exit(7)


def nobody_left(folder: Path) -> bool:
    pids = [int(path.read_text()) for path in folder.glob("pid-*")]
    return bool(pids) and not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("start", ["forked", "anew"])
def test_ranks_share_their_heaps(start: str, request: pytest.FixtureRequest) -> None:
    if start == "anew":
        request.getfixturevalue("ranks_start_anew")
    assert emulated.run(3, meet, "hello", payload_bytes=PAYLOAD_BYTES) == [
        ("hello", 10 + (rank - 1) % 3, 12_288, [0, 1, 2]) for rank in range(3)
    ]


def test_a_hang_is_a_timeout(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError, match=r"ranks \[.*\] had not ended after 10 s"):
        emulated.run(2, hang, tmp_path, timeout_s=10)
    assert nobody_left(tmp_path)


@pytest.mark.thorough
def test_an_error_shows_the_rank_s_output(ranks_start_anew: None, tmp_path: Path) -> None:
    sentence = r"(?s)rank 0 ended with 1:.*ValueError: rank 0 cannot go on"
    with pytest.raises(RuntimeError, match=sentence):
        emulated.run(2, fail, tmp_path, timeout_s=60)
    assert nobody_left(tmp_path)


def test_a_crash_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"rank . ended with 7"):
        emulated.run(2, crash, tmp_path, timeout_s=60)
    assert nobody_left(tmp_path)


@pytest.mark.thorough
def test_a_killed_pytest_leaves_no_rank(tmp_path: Path) -> None:
    """The job hangs: orphans would poll their flags until the machine is started again."""
    job = Path(__file__).with_name("orphans.py")
    options = ["-p", "no:cacheprovider", f"--basetemp={tmp_path / 'job'}"]
    command = [sys.executable, "-m", "pytest", *options, str(job)]
    process = subprocess.Popen(
        command, cwd=job.parent.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    pids, until = list[int](), time.monotonic() + 90
    while len(pids) < 2 and time.monotonic() < until and process.poll() is None:
        time.sleep(0.05)
        texts = [path.read_text() for path in (tmp_path / "job").rglob("pid-*")]
        pids = [int(text) for text in texts if text]
    (heaps,) = {path.read_text() for path in (tmp_path / "job").rglob("heaps-*")}
    process.kill()
    process.wait()
    until = time.monotonic() + 20
    while (
        left := [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    ) and time.monotonic() < until:
        time.sleep(0.05)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(heaps)
    assert left == [] and len(pids) == 2


def test_heaps_are_removed() -> None:
    (folder, heaps), _ = emulated.run(2, look)
    assert heaps == ["heap-0", "heap-1"] and not Path(folder).exists()


def test_the_caller_can_still_compile() -> None:
    assert "TRITON_INTERPRET" not in os.environ
