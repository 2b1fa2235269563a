"""Ctrl-C ends what this process started, without a word from any of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import stand_ins
from command_line import hear_interrupts

from tftune.tuner.bench import worker
from tftune.tuner.bench.processes import deaf_to_ctrl_c
from tftune.tuner.bench.sandbox import Broken, World
from tftune.tuner.bench.worker import WorldSpec

PROGRAM = """
import os, time
from concurrent.futures import ThreadPoolExecutor
from tftune.tuner.bench.processes import Helpers

if __name__ == "__main__":
    try:
        with ThreadPoolExecutor(1) as threads, Helpers(2) as pool:
            started = [pool.submit(os.getpid) for _ in range(2)]
            print(*([job.result() for job in started] if WAIT else []), flush=True)
            work = lambda: [job.result() for job in [pool.submit(time.sleep, 60) for _ in range(2)]]
            threads.submit(work).result() if THREADS else work()
    except KeyboardInterrupt:
        print("stopped", flush=True)
"""


def waits(pid: int) -> bool:
    """Whether the first thread of a process waits, and did not wake up for 50 ms."""

    def seen() -> list[tuple[str, str]]:
        status = Path(f"/proc/{pid}/status").read_text()
        return re.findall(r"State:\s*(\w)|ctxt_switches:\s*(\d+)", status)

    before = seen()
    time.sleep(0.05)
    return before[0][0] == "S" and seen() == before


@pytest.mark.parametrize(
    ("wait", "threads"),
    [(False, False), (True, False), (True, True)],
    ids=["while it starts", "while it works", "work given by a thread"],
)
def test_ctrl_c_ends_a_pool_quietly(tmp_path: Path, wait: bool, threads: bool) -> None:
    (tmp_path / "program.py").write_text(
        PROGRAM.replace("WAIT", str(wait)).replace("THREADS", str(threads))
    )
    command = [sys.executable, str(tmp_path / "program.py")]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hear_interrupts,
    ) as process:
        assert process.stdout is not None
        children = [int(pid) for pid in process.stdout.readline().split()]
        while not waits(process.pid):  # a signal on Python's way into a lock is not heard
            pass
        os.killpg(process.pid, signal.SIGINT)
        out, errors = process.communicate(timeout=30)
    assert (process.returncode, out.split(), errors) == (0, ["stopped"], "")
    assert len(children) == 2 * wait
    for child in children:
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)


def test_ranks_never_hear_ctrl_c(ranks_start_anew: None) -> None:
    world = World(WorldSpec(Path(), 2, True, 1 << 16, 0))
    world.start()
    try:
        status = [Path(f"/proc/{rank.pid}/status").read_text() for rank, _ in world._ranks]
        blocked = [int(re.search(r"SigBlk:\s*(\w+)", text)[1], 16) for text in status]  # type: ignore[index]
        assert [mask >> signal.SIGINT - 1 & 1 for mask in blocked] == [1, 1]
    finally:
        world.kill()


def test_tests_fork_no_rank_that_has_a_gpu() -> None:
    """In what is forked, Triton's own functions are interpreted: a calibration ended there in its
    first step."""
    world = World(WorldSpec(Path(), 1, False, 1 << 16, 0), serve=stand_ins.say_what_triton_does)
    with world:
        assert world.request("anything", (), 30.0) == ["JITFunction"]


def test_a_rank_says_where_an_exception_without_words_was_raised() -> None:
    serve = partial(worker.main, make=stand_ins.Wordless)
    said = r"rank 0 raised AssertionError in start: in .*stand_ins.py, line \d+: raise Asser"
    with pytest.raises(Broken, match=said):
        World(WorldSpec(Path(), 1, True, 1 << 16, 0), serve=serve).start()


def test_this_process_hears_it_again_afterwards() -> None:
    with deaf_to_ctrl_c():
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
