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
