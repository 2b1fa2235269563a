"""Whatever tftune writes replaces a file whole or leaves it as it was; nothing never replaces rows,
and a pipe is never waited for."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import stored
from test_audit import row
from test_report import page, rows

from tftune.db.audit import write_audits
from tftune.db.calibration_file import described, write_chip
from tftune.db.files import read_file, replace_file
from tftune.db.store import Store, StoreError, read_rows, write_rows
from tftune.db.target import Target
from tftune.kernels.core.space import Config
from tftune.models import export
from tftune.models.artifact import read_artifact
from tftune.report import report

WRITERS: dict[str, Callable[[Path], Any]] = {
    "rows": lambda path: write_rows(path, [stored.RUN], stored.TRIALS),
    "artifact": lambda path: export.write({"schema": 1}, path),
    "chip file": lambda path: write_chip(path, Target.parse("h200x8"), {}, {}, {}, "2026-11-22"),
    "audits": lambda path: write_audits(path, [row(Config("bsp"))]),
}


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def killed(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
class TestEveryWriter:
    def test_leaves_the_old_file_on_a_full_disk(
        self, write: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "kept"
        path.write_text("old")
        monkeypatch.setattr(os, "fsync", full_disk)
        said = f"^cannot write .*{path}: No space left on device; (name|choose) "
        with pytest.raises(StoreError, match=said):
            write(path)
        assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]

    def test_takes_a_hyphen_for_no_file(
        self, write: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Other programs write to stdout then; here a file of that name would surprise."""
        monkeypatch.chdir(tmp_path)
        with pytest.raises(StoreError, match=r"^cannot write .*-: '-' is no file here; give a"):
            write(Path("-"))
        assert list(tmp_path.iterdir()) == []

    def test_leaves_the_old_file_when_it_is_stopped(
        self, write: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "kept"
        path.write_text("old")
        monkeypatch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            write(path)
        assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]

    def test_replaces_what_a_link_names_and_keeps_its_permissions(
        self, write: Callable[[Path], Any], tmp_path: Path
    ) -> None:
        path, link = tmp_path / "kept", tmp_path / "link"
        path.write_text("old")
        path.chmod(0o600)
        link.symlink_to(path)
        write(link)
        assert link.is_symlink() and path.read_text() != "old"
        assert path.stat().st_mode & 0o777 == 0o600

    def test_replaces_no_pipe_folder_or_database(
        self, write: Callable[[Path], Any], tmp_path: Path
    ) -> None:
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "folder").mkdir()
        with Store.open(tmp_path / "t.db"):
            pass
        for name, why in (
            ("pipe", "a pipe or a device, not a file"),
            ("folder", "Is a directory"),
            ("t.db", "is a database"),
        ):
            with pytest.raises(StoreError, match=why):
                write(tmp_path / name)
        assert (tmp_path / "pipe").is_fifo()


def test_a_report_leaves_the_old_page_and_figures_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.read_bytes() for path in report.write(page(), tmp_path)}
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(StoreError, match="No space left on device; name another folder with --out"):
        report.write(page(trials=rows()[:4]), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_pipe_is_no_artifact_and_no_chip_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for read, what in ((read_artifact, "cannot read the artifact"), (described, "cannot read")):
        said = f"^{what} {tmp_path}/pipe: it is a pipe or a device, not a file; run `tftune "
        with pytest.raises(ValueError, match=said):
            read(tmp_path / "pipe")


def test_a_file_is_read_and_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    replace_file(tmp_path / "file", "text")
    assert read_file(tmp_path / "file") == b"text"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="a pipe or a device"):
        read_file(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "none")


class TestNothingReplacesNoRows:
    def test_an_export_that_no_trial_agrees_with_keeps_the_file(
        self, path: Path, tmp_path: Path
    ) -> None:
        keep = tmp_path / "keep.jsonl"
        with Store.open(path) as store:
            store.add_run(stored.RUN)
            for each in stored.TRIALS:
                store.add_trial(each)
            store.export_rows(keep)
            before = keep.read_bytes()
            sentence = (
                rf"^{keep} keeps its {len(before):,} bytes: no trial in {path} is of op "
                r"flash_decode, mode eager; it has "
                r".*\d of all_gather_gemm on h200x8 \(node, graph\).*; `tftune trials export` "
                r"with filters of those, or a new file$"
            )
            with pytest.raises(StoreError, match=sentence):
                store.export_rows(keep, op="flash_decode", mode="eager")
        assert keep.read_bytes() == before and read_rows(keep)[1] == stored.TRIALS

    def test_so_does_one_of_an_empty_database(self, path: Path, tmp_path: Path) -> None:
        (tmp_path / "keep.jsonl").write_text("rows\n")
        said = "has no trials; `tftune search` or `tftune trials import` fills"
        with Store.open(path) as store, pytest.raises(StoreError, match=said):
            store.export_rows(tmp_path / "keep.jsonl")
        assert (tmp_path / "keep.jsonl").read_text() == "rows\n"

    def test_a_new_file_may_be_empty(self, path: Path, tmp_path: Path) -> None:
        with Store.open(path) as store:
            assert store.export_rows(tmp_path / "new.jsonl") == 0
            assert store.export_rows(tmp_path / "new.jsonl") == 0
