"""Emulated ranks that end with the process that started them; and a job that hangs, to be killed.

pytest collects the job only where this file is named to it, as `test_emulated.py` does.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace

_LIBC = ctypes.CDLL(None)
"""Loaded before any fork."""
_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def popen_of_mortals() -> SimpleNamespace:
    """What `emulated` takes of `subprocess`; its processes die with the parent's thread."""
    popen = partial(subprocess.Popen, preexec_fn=_die_with_parent)
    return SimpleNamespace(Popen=popen, STDOUT=subprocess.STDOUT)


def hang(workspace: Workspace, folder: Path) -> None:
    (folder / f"pid-{workspace.rank}").write_text(str(os.getpid()))
    while True:
        time.sleep(0.01)


def test_a_job_that_hangs(tmp_path: Path) -> None:
    emulated.run(2, hang, tmp_path, timeout_s=120)
