"""The kernel hash changes with what a variant does, wherever that is written, and with nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tftune.kernels.source import kernel_hash

SHARED = '''
"""Shared."""
import triton
import triton.language as tl

EPOCH: tl.constexpr = 0
UNUSED = 1


@triton.jit
def peer(pointer, rank):
    """Where a peer keeps it."""
    return pointer + offset(rank) + EPOCH


def offset(rank):
    return rank * 8


def unrelated():
    return UNUSED


class Workspace:
    size = 1
'''
VARIANT = '''
"""A variant."""
from __future__ import annotations

import triton
from tftune.kernels import heap
from tftune.kernels.shared import Workspace, peer as of_peer


@triton.jit(do_not_specialize=["m"])
def push(a, m, workspace: Workspace, BLOCK: tl.constexpr):
    # a comment
    """A docstring."""
    if m > BLOCK:
        raise ValueError(f"{m=} of {a['k']!r:>{BLOCK}} {{}} 'q' {', '.join(a)}")
    return of_peer(a, m)[1:2, ...] + heap.flag(m) - 2**-1


def other():
    return helper()


def helper():
    return (1, *())
'''
HEAP = "from .shared import offset as where\n\n\ndef flag(m):\n    from tftune.kernels.late import late\n    return late(where(m))\n"
FILES = {
    "shared.py": SHARED,
    "op/push.py": VARIANT,
    "op/pull.py": "def pull(): pass\n",
    "heap.py": HEAP,
    "late.py": "def late(x): return x\n",
}
GOLDEN = "a5e50fe52e28"

_changed = 0


def digits(tmp_path: Path, file: str = "", old: str = "", new: str = "") -> str:
    """The hash of `push` after `old` was replaced by `new` in `file`, in a folder of its own."""
    global _changed
    _changed += 1
    root = tmp_path / str(_changed)
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        assert name != file or old in text
        (root / name).write_text(text.replace(old, new) if name == file else text)
    return kernel_hash("op", "push", root)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("op/push.py", '["m"]', '["a"]'),
        ("op/push.py", "BLOCK: tl.constexpr", "BLOCK"),
        ("op/push.py", "(1, *())", "(2, *())"),
        ("op/push.py", "import Workspace, peer as", "import Workspace, offset as"),
        ("shared.py", "EPOCH: tl.constexpr = 0", "EPOCH: tl.constexpr = 1"),
        ("shared.py", "rank * 8", "rank * 16"),
        ("shared.py", "@triton.jit\n", ""),
        ("heap.py", "offset as where", "peer as where"),
        ("late.py", "return x", "return -x"),
    ],
)
def test_what_is_reached_counts(tmp_path: Path, file: str, old: str, new: str) -> None:
    assert digits(tmp_path, file, old, new) != digits(tmp_path)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("op/push.py", "# a comment", "# another comment"),
        ("op/push.py", "A docstring.", "Another docstring."),
        ("op/push.py", "(1, *())", "(  1,\n        *(),\n    )"),
        ("shared.py", '    """Where a peer keeps it."""\n', ""),
        ("shared.py", "UNUSED = 1", "UNUSED = 2"),
        ("shared.py", "return UNUSED", "return -UNUSED"),
        ("shared.py", "size = 1", "size = 2"),
        ("op/pull.py", "pass", "return 1"),
    ],
)
def test_what_is_not_reached_does_not(tmp_path: Path, file: str, old: str, new: str) -> None:
    assert digits(tmp_path, file, old, new) == digits(tmp_path)


def test_the_same_on_every_python(tmp_path: Path) -> None:
    """The digits of Python 3.11, 3.12 and 3.13, which parse and quote f-strings in three ways."""
    assert digits(tmp_path) == GOLDEN


def test_a_constant_chosen_by_a_condition_counts_on_both_sides(tmp_path: Path) -> None:
    both = "if triton:\n    EPOCH = 0\nelse:\n    EPOCH = 1\n"
    first = digits(tmp_path, "shared.py", "EPOCH: tl.constexpr = 0\n", both)
    assert first != digits(tmp_path, "shared.py", "EPOCH: tl.constexpr = 0\n", both.replace("= 1", "= 2"))


def test_an_unknown_variant_lists_the_files() -> None:
    with pytest.raises(ValueError, match=r"all_gather_gemm has no source file fetch\.py; .*bsp.*pull.*push"):
        kernel_hash("all_gather_gemm", "fetch")


def test_an_import_of_everything_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="imports \\*"):
        digits(tmp_path, "heap.py", "import offset as where", "import *")


def test_real_variants_differ() -> None:
    found = {kernel_hash("all_gather_gemm", variant) for variant in ("bsp", "pull", "push")}
    assert len(found) == 3
    assert all(re.fullmatch("[0-9a-f]{12}", digits) for digits in found)


def test_it_reads_sources_without_importing_them() -> None:
    """A machine that only replays rows has neither torch nor Triton."""
    code = "import sys; from tftune.kernels.source import kernel_hash as k; k('all_gather_gemm', 'push'); print('triton' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
