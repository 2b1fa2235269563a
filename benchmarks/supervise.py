"""Processes of a script, one for each rank, that end when one fails or the time is over."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from node import NO_MULTICAST


def supervise(world: int, seconds: float, arguments: Sequence[str], script: str | Path) -> int:
    """Start this script for each rank, with --world, --folder and --rank; end all processes with
    the first that fails, or after so many seconds. The exit code."""
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, script, *arguments, "--world", str(world), "--folder", folder]
        ranks = [
            subprocess.Popen([*command, "--rank", str(rank)], env=os.environ | NO_MULTICAST)
            for rank in range(world)
        ]
        try:
            while any(process.poll() is None for process in ranks):
                if failed := [
                    f"rank {r} with {p.returncode}" for r, p in enumerate(ranks) if p.poll()
                ]:
                    print(f"ended: {', '.join(failed)}", file=sys.stderr)
                    return 1
                if time.monotonic() > until:
                    print(f"ranks had not ended after {seconds:.0f} s: killed", file=sys.stderr)
                    return 1
                time.sleep(0.05)
            return int(any(process.returncode for process in ranks))
        finally:
            for process in ranks:
                process.kill()
                process.wait()
