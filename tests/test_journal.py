"""Rows that a serving process appends, and what the next start learns of its last launch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stored import RUN, TRIALS, raw, trial

from tftune.db import journal
from tftune.db.journal import Journal, append, excluded, recover
from tftune.db.lock import StoreError
from tftune.db.store import Store, read_rows
from tftune.db.trial import Failure

BUILT = replace(RUN, id="r2", build={"torch": "2.13.0", "triton": "3.6.0"})


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return tmp_path / "rows.jsonl"


def failed(kind: str, number: int = 1, **changes: Any) -> Any:
    outcome = Failure(kind, "it did not end")
    return trial(number, **{"outcome": outcome, "run": BUILT.id, "stage": "warm_up"} | changes)


def test_what_was_appended_is_read_and_imported(rows: Path, store: Store) -> None:
    append(rows, [RUN], TRIALS[:2])
    append(rows, [RUN], TRIALS[2:])
    assert read_rows(rows) == ([RUN, RUN], TRIALS)
    assert store.import_rows(rows) == (len(TRIALS), 0)
    assert store.import_rows(rows) == (0, len(TRIALS))


def test_an_end_is_told_by_a_later_line_of_the_same_run(rows: Path, store: Store) -> None:
    append(rows, [RUN], TRIALS)
    append(rows, [replace(RUN, ended={"0": {"sm_mhz": 1965.0}})], ())
    store.import_rows(rows)
    assert store.runs()[0].ended == {"0": {"sm_mhz": 1965.0}}


@pytest.mark.parametrize("cut", [1, 40])
def test_a_line_cut_off_by_a_crash_is_removed_by_the_next_append(rows: Path, cut: int) -> None:
    append(rows, [RUN], TRIALS[:2])
    rows.write_bytes(rows.read_bytes()[:-cut])
    append(rows, [], TRIALS[2:])
    assert read_rows(rows) == ([RUN], [TRIALS[0], *TRIALS[2:]])


def test_a_database_is_not_appended_to(path: Path) -> None:
    with Store.open(path):
        pass
    with raw(path), pytest.raises(StoreError, match="is a database, which would be lost"):
        append(path, [RUN], [])


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "none" / "rows.jsonl"
    with pytest.raises(StoreError, match=r"cannot write .*none/rows\.jsonl: No such file"):
        append(missing, [RUN], [])
    with pytest.raises(StoreError, match=r"cannot write .*none/rows\.jsonl: No such file"):
        Journal(missing, RUN)


def test_processes_that_append_at_once_leave_whole_lines(rows: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[2]); from stored import *\n"
        "from pathlib import Path\n"
        "from tftune.db.journal import append\n"
        "for n in range(40): append(Path(sys.argv[1]), [RUN], [trial(n, mode=sys.argv[3])])"
    )
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", code, str(rows), here]
    started = [subprocess.Popen([*command, mode]) for mode in ("graph", "eager")]
    assert [process.wait(60) for process in started] == [0, 0]
    assert len(read_rows(rows)[1]) == 80


class TestExclusions:
    def test_what_hung_crashed_or_was_wrong_is_left_out(self, rows: Path) -> None:
        kinds = ("hang", "crash", "wrong", "compile", "resources")
        trials = [failed(kind, number) for number, kind in enumerate(kinds)]
        append(rows, [BUILT], [trial(9, run=BUILT.id), *trials])
        expected = {(t.op, t.config, t.revision) for t in trials[:3]}
        assert excluded(rows, "h200x8", "3.6.1") == expected

    def test_only_for_this_target_and_minor_version_of_triton(self, rows: Path) -> None:
        append(rows, [BUILT], [failed("hang")])
        assert excluded(rows, "h200x8", "3.6.0")
        assert not excluded(rows, "h200x4", "3.6.0") and not excluded(rows, "h200x8", "3.7.0")

    def test_no_file_excludes_nothing(self, rows: Path) -> None:
        assert not excluded(rows, "h200x8", "3.6.0")

    def test_a_cut_line_is_passed_over_and_a_broken_one_is_named(self, rows: Path) -> None:
        append(rows, [BUILT], [failed("hang", 1), failed("hang", 2)])
        whole = rows.read_bytes()
        rows.write_bytes(whole[:-5])
        assert len(excluded(rows, "h200x8", "3.6.0")) == 1
        for broken in (b'{"trial": 3}\n', b"[1]\n", b"no json\n", b"{}\n"):
            rows.write_bytes(whole + broken)
            with pytest.raises(StoreError, match=r"line 4 of .*rows\.jsonl is no row"):
                excluded(rows, "h200x8", "3.6.0")


def in_other_process(rows: Path, code: str) -> None:
    """Run code with a journal open, as `journal`, in a process that then kills itself."""
    start = (
        "import os, sys; sys.path.insert(0, sys.argv[2]); from pathlib import Path\n"
        "from test_journal import *\n"
        "journal = Journal(Path(sys.argv[1]), BUILT)\n"
    )
    command = [sys.executable, "-c", f"{start}{code}\nos.kill(os.getpid(), 9)", str(rows)]
    done = subprocess.run([*command, str(Path(__file__).parent)], capture_output=True, text=True)
    assert done.returncode == -9, done.stderr


class TestJournal:
    def test_kill_9_in_a_launch_becomes_a_row(self, rows: Path) -> None:
        in_other_process(rows, "journal.expect([failed('crash')])")
        assert recover(rows) == [failed("crash")]
        assert read_rows(rows) == ([BUILT], [failed("crash")])
        assert recover(rows) == [] and len(list(rows.parent.iterdir())) == 1
        row = failed("crash")
        assert excluded(rows, "h200x8", "3.6.0") == {(row.op, row.config, row.revision)}

    def test_the_last_word_counts(self, rows: Path) -> None:
        code = "journal.expect([failed('crash')]); journal.expect([failed('hang', 3)])"
        in_other_process(rows, code)
        assert recover(rows) == [failed("hang", 3)]

    def test_kill_9_between_launches_is_no_failure(self, rows: Path) -> None:
        in_other_process(rows, "journal.expect([failed('crash')]); journal.expect(())")
        assert recover(rows) == [] and list(rows.parent.iterdir()) == []

    def test_a_journal_that_was_cut_off_says_what_it_said_before(self, rows: Path) -> None:
        code = "journal.expect([failed('crash')]); os.write(journal._file, b'{\"tri')"
        in_other_process(rows, code)
        assert recover(rows) == [failed("crash")]

    def test_one_that_is_in_use_is_passed_over(self, rows: Path) -> None:
        kept = Journal(rows, BUILT)
        kept.expect([failed("crash")])
        assert recover(rows) == [] and not rows.exists()
        kept.expect(())
        kept.close()
        assert list(rows.parent.iterdir()) == []

    def test_after_an_exception_in_a_launch_the_journal_stays(self, rows: Path) -> None:
        kept = Journal(rows, BUILT)
        kept.expect([failed("crash")])
        kept.close()
        assert recover(rows) == [failed("crash")]

    def test_two_that_end_are_both_recovered(self, rows: Path) -> None:
        for number in (1, 2):
            in_other_process(rows, f"journal.expect([failed('crash', {number})])")
        assert {row.config for row in recover(rows)} == {failed("crash", n).config for n in (1, 2)}

    def test_it_is_on_disk_before_anything_is_launched(
        self,
        rows: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        kept = Journal(rows, BUILT)
        synced: list[int] = []
        monkeypatch.setattr(journal.os, "fsync", synced.append)
        kept.expect([failed("crash")])
        assert synced == [kept._file]
        (file,) = rows.parent.iterdir()
        assert json.loads(file.read_bytes().splitlines()[-1])["trials"][0]["failure"] == "crash"
        monkeypatch.undo()
        kept.close()


def test_rows_are_lines_that_need_no_sqlite() -> None:
    code = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] not in {'tftune', *sys.stdlib_module_names}:\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "import tftune.db.journal"
    )
    assert subprocess.run([sys.executable, "-c", code], env=os.environ).returncode == 0
