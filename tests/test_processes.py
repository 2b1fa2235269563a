"""Ctrl-C ends what this process started, without a word from any of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, time
from tftune.tuner.processes import Helpers

if __name__ == "__main__":
    try:
        with Helpers(2) as pool:
            started = [pool.submit(os.getpid) for _ in range(2)]
            print(*([job.result() for job in started] if WAIT else []), flush=True)
            jobs = [pool.submit(time.sleep, 60) for _ in range(2)]
            jobs[0].result()
    except KeyboardInterrupt:
        print("stopped", *(process for process in (pool._processes or ())), flush=True)
"""


@pytest.mark.parametrize("wait", [False, True], ids=["while it starts", "while it works"])
def test_ctrl_c_ends_a_pool_quietly(tmp_path: Path, wait: bool) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.replace("WAIT", str(wait)))
    command = [sys.executable, str(tmp_path / "program.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        children = [int(pid) for pid in process.stdout.readline().split()]
        os.killpg(process.pid, signal.SIGINT)
        out, errors = process.communicate(timeout=30)
    assert (process.returncode, out.split()[0], errors) == (0, "stopped", "")
    assert len(children) == 2 * wait
    for child in children:
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)


def test_this_process_hears_it_again_afterwards() -> None:
    from tftune.tuner.processes import deaf_to_ctrl_c

    with deaf_to_ctrl_c():
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
