"""Folders that ranks share: whose owner was killed is removed by the next one, and nobody
else's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tftune.tuner.bench.shared_dir import Shared

OWNER = (
    "from tftune.tuner.bench.shared_dir import Shared; print(Shared.make().path, flush=True); "
    "input()"
)


def test_what_a_killed_owner_left_is_removed_by_the_next_one() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        theirs = Path(owner.stdout.readline().strip())
        first = Shared.make()
        assert theirs.is_dir(), "its owner lives"
        owner.kill()
    (theirs / "heap-0").write_bytes(b"1")
    second = Shared.make()
    assert not theirs.exists() and first.path.is_dir() and second.path.is_dir()
    for mine in (first, second):
        mine.remove()
        assert not mine.path.exists()


def test_a_folder_without_a_lock_is_nobody_s_to_remove() -> None:
    mine = Shared.make()
    beside = mine.path.with_name(f"{mine.path.name}-beside")
    beside.mkdir()
    try:
        Shared.make().remove()
        assert beside.is_dir()
    finally:
        beside.rmdir()
        mine.remove()
