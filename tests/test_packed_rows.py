"""Files of rows are packed by their name, and read whatever their name says."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from stored import RUN, TRIALS

from tftune.db.store import StoreError, read_rows, write_rows

UNPACK: dict[str, Callable[[bytes], bytes]] = {
    ".xz": lzma.decompress,
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
}


@pytest.mark.parametrize("suffix", UNPACK)
def test_a_file_is_packed_as_its_name_says_and_reads_under_any_name(
    suffix: str, tmp_path: Path
) -> None:
    plain, packed = tmp_path / "a.jsonl", tmp_path / f"a.jsonl{suffix}"
    for path in (plain, packed):
        write_rows(path, [RUN], TRIALS)
    assert UNPACK[suffix](packed.read_bytes()) == plain.read_bytes()
    assert read_rows(packed) == ([RUN], TRIALS)
    other = packed.rename(tmp_path / "b.jsonl")
    assert read_rows(other) == ([RUN], TRIALS)
    assert read_rows(plain.rename(packed)) == ([RUN], TRIALS)


@pytest.mark.parametrize("suffix", UNPACK)
@pytest.mark.parametrize("damage", ["cut", "other"])
def test_a_packed_file_that_is_not_whole_is_named(suffix: str, damage: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.jsonl{suffix}"
    write_rows(path, [RUN], TRIALS)
    path.write_bytes(path.read_bytes()[:-9] if damage == "cut" else b"no such thing")
    with pytest.raises(StoreError, match=rf"{path} is no whole \{suffix} file .*; get it again"):
        read_rows(path)


def test_a_file_that_is_no_text_is_said_to_be_none(tmp_path: Path) -> None:
    """Not that its first line should be deleted."""
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd\x04\x58\x00\x01")
    with pytest.raises(StoreError, match=r"holds no lines of JSON; .* as \.xz, \.gz, \.bz2"):
        read_rows(path)
