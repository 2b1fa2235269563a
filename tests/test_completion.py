"""What a shell completes: the installed command is asked as bash asks it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TFTUNE = Path(sys.executable).with_name("tftune")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("tftune sel", ["select"]),
        ("tftune select al", ["all_gather_gemm", "all_reduce"]),
        ("tftune select all_reduce m=8,no", ["m=8,norm="]),
        ("tftune select all_reduce m=8,m", []),
        ("tftune search all_gather_gemm --shapes pa", ["paper"]),
        ("tftune search flash_decode --shapes paper;kv_", ["paper;kv_heads=", "paper;kv_len="]),
        ("tftune search --shapes pa", []),
        (
            "tftune select all_gather_gemm m=16 --target gh200x",
            ["gh200x1", "gh200x2", "gh200x4", "gh200x8"],
        ),
    ],
)
def test_a_shell_completes(line: str, words: list[str]) -> None:
    asked = {"_TFTUNE_COMPLETE": "complete_bash", "COMP_WORDS": line}
    asked["COMP_CWORD"] = str(len(line.split()) - 1)
    done = subprocess.run([TFTUNE], env=os.environ | asked, capture_output=True, text=True)
    assert done.stdout.split() == words and not done.stderr
