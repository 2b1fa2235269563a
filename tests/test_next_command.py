"""A search ends with the commands that make an answer of it, and they run."""

from __future__ import annotations

import re
from typing import Any

SHAPE = "m=64,n=3584,k=8192,world=8"
OP = "all_gather_gemm"


def test_a_search_ends_with_commands_that_run(tftune: Any) -> None:
    search = f"search {OP} --on model --target mi300x8 --shapes {SHAPE} --mode graph"
    ran = tftune(f"{search} --effort quick --pool 60 --db own.db")
    export, select = re.findall(r"`tftune ([^`]*)`", ran.err.splitlines()[-1])
    assert tftune(export).code == 0
    answered = tftune(select.replace("SHAPE", SHAPE))
    assert answered.code == 0 and "modelled, not measured" in answered.out
