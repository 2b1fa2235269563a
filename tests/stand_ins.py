"""Stand-ins that other processes import by name."""

from __future__ import annotations

import os
import signal
import time
from typing import Any


def compiler(shape: Any, config: Any, chip: Any) -> None:
    """A compiler that hangs for configs of 2 stages and dies for those of 3."""
    if config["num_stages"] == 2:
        time.sleep(60)
    if config["num_stages"] == 3:
        os.kill(os.getpid(), signal.SIGKILL)


def supervise() -> None:
    """A supervisor whose compiler hangs; it says so, and waits to be killed."""
    from tftune.kernels.all_gather_gemm import AllGatherGemm
    from tftune.kernels.all_gather_gemm.space import SPACE
    from tftune.kernels.chips import H200
    from tftune.tuner.compiler import CompilePool

    pool, shape = CompilePool(H200, 60, workers=1), AllGatherGemm(64, 256, 512, 2)
    pool.ahead(shape, [SPACE.defaults(shape, H200)[-1]])
    while not all(job.running() for job in pool._jobs.values()):
        time.sleep(0.01)
    print("compiling", flush=True)
    time.sleep(60)


if __name__ == "__main__":
    supervise()
