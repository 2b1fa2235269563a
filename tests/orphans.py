"""A job of emulated ranks that hangs, to be killed.

pytest collects it only where this file is named to it, as `test_emulated.py` does.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace


def hang(workspace: Workspace, folder: Path) -> None:
    (folder / f"heaps-{workspace.rank}").write_text(sys.argv[1])
    (folder / f"pid-{workspace.rank}").write_text(str(os.getpid()))
    while True:
        time.sleep(0.01)


def test_a_job_that_hangs(tmp_path: Path) -> None:
    emulated.run(2, hang, tmp_path, timeout_s=120)
