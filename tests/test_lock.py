"""One process at a time writes a database, on a disk of this machine; who may not is told why in
one sentence."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from stored import RUN, trial

from tftune.db import lock, patience
from tftune.db.store import Store, StoreError


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store.open(path) as opened:
        opened.add_run(RUN)
        yield opened


@contextmanager
def other_process(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Another process that runs `code` with this module's names; killed at the end."""
    start = (
        f"import sys, time; sys.path.insert(0, {str(Path(__file__).parent)!r}); from "
        "test_lock import *; path = Path(sys.argv[1])\n"
    )
    command = [sys.executable, "-c", start + code, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def refusal(path: Path, write: bool = True) -> str:
    """What is said to who opens a database and may not."""
    with pytest.raises(StoreError) as error:
        Store.open(path, write=write)
    return str(error.value)


WRITES = """
with Store.open(path) as store:
    store.add_run(RUN)
    for number in range({}):
        store.add_trial(trial(number))
        print(number, flush=True)
"""


class TestOneWriter:
    def test_a_second_writer_is_told_who_writes(self, store: Store, path: Path) -> None:
        code = """
patience.SAID_S, patience.LIMIT_S = 0.05, 0.2
try: Store.open(path)
except StoreError as error: print(error)
"""
        with other_process(code, path) as second:
            assert f"{path} is being written by process {os.getpid()}; " in first_line(second)

    def test_a_writer_that_ends_is_waited_for(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(patience, "SAID_S", 0.05)
        code = """
with Store.open(path) as store:
    store.add_run(RUN)
    print("open", flush=True)
    time.sleep(0.5)
"""
        with other_process(code, path) as first:
            assert first_line(first) == "open\n"
            with Store.open(path) as store:
                assert store.runs() == [RUN]
            (said,) = (record.getMessage() for record in caplog.records)
            assert said.startswith(f"{path} is being written by process {first.pid}: waits until")

    def test_who_waits_for_several_one_after_another_has_its_turn(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Four searches that were started together hold the file in turn."""
        now, tried = [0.0], lock._try
        clock = SimpleNamespace(
            monotonic=lambda: now[0], sleep=lambda seconds: now.append(now.pop() + 1)
        )
        monkeypatch.setattr(lock, "time", clock)

        def in_turn(place: Path) -> int | str:
            return f"77{now[0] // 20:.0f}" if now[0] < 100 else tried(place)

        monkeypatch.setattr(lock, "_try", in_turn)
        with Store.open(path):
            assert now == [100.0]
        monkeypatch.setattr(lock, "_try", lambda place: "771")
        assert "is being written by process 771" in refusal(path)
        assert now == [100 + patience.LIMIT_S]
        monkeypatch.setattr(lock, "_try", lambda place: f"77{now[0] % 2:.0f}")
        assert "is being written by process 77" in refusal(path)
        assert now == [100 + (1 + lock.TURNS) * patience.LIMIT_S]

    def test_a_link_to_the_file_is_the_same_file(self, store: Store, path: Path) -> None:
        path.with_name("link.db").symlink_to(path)
        said = refusal(path.with_name("link.db"))
        assert f"is being written by process {os.getpid()}" in said

    def test_a_failed_open_gives_the_lock_back(self, path: Path) -> None:
        path.write_text("this is no database, " * 100)
        for _ in range(2):
            assert f"SQLite cannot use {path}: file is not a database" in refusal(path)

    def test_kill_9_loses_nothing_committed(self, path: Path) -> None:
        with other_process(WRITES.format(10_000), path) as writer:
            while int(said := first_line(writer)) < 20:
                pass
            writer.kill()
            assert writer.stdout is not None
            committed = int((writer.stdout.read().splitlines() or [said])[-1]) + 1
        with Store.open(path) as store:
            kept = store.trials()
            assert len(kept) in (committed, committed + 1)
            assert kept == [trial(number) for number in range(len(kept))]
            assert store.check() == []

    def test_a_forked_child_does_not_keep_the_lock_of_a_killed_writer(self, path: Path) -> None:
        """A compile pool outlives its parent for a moment; the next search must not wait for it."""
        code = """
store = Store.open(path)
child = os.fork()
if child == 0:
    print(os.getpid(), flush=True)
time.sleep(30)
"""
        with other_process(code, path) as writer:
            child = int(first_line(writer))
        try:
            with Store.open(path) as store:
                assert store.check() == []
        finally:
            os.kill(child, 9)

    def test_a_reader_while_a_writer_writes(self, path: Path) -> None:
        with other_process(WRITES.format(100), path) as writer:
            said = int(first_line(writer))
            with Store.open(path, write=False) as reader:
                while said < 99:
                    said = int(first_line(writer))
                    numbers = [each.config["block_m"] - 16 for each in reader.trials()]
                    assert numbers[: said + 1] == list(range(said + 1))
                assert writer.wait() == 0

    def test_a_reader_cannot_write(self, store: Store, path: Path) -> None:
        with Store.open(path, write=False) as reader:
            add_trial, add_run = partial(reader.add_trial, trial()), partial(reader.add_run, RUN)
            for write in (add_trial, add_run, reader.optuna_storage):
                with pytest.raises(StoreError, match="was opened for reading"):
                    write()


class TestFullDisk:
    """SQLite says the same of a page limit as of a full disk."""

    def test_names_the_file_and_keeps_what_was_stored(self, store: Store, path: Path) -> None:
        store.add_trial(trial())
        (pages,) = store._db.execute("PRAGMA page_count").fetchone()
        store._db.execute(f"PRAGMA max_page_count = {pages}")
        said = f"cannot write {path}: database or disk is full; what finished is stored; free space"
        with pytest.raises(StoreError, match=f"^{said} there"):
            for number in range(1, 10_000):
                store.add_trial(trial(number))
        kept = store.trials()
        assert kept and kept == [trial(number) for number in range(len(kept))]
        assert store.check() == []

    def test_names_the_file_where_optuna_meets_it(self, path: Path) -> None:
        """Optuna and SQLAlchemy raise their own errors from SQLite's."""
        full = sqlite3.OperationalError("database or disk is full")
        full.sqlite_errorcode = sqlite3.SQLITE_FULL
        with (
            pytest.raises(StoreError, match=rf"^cannot write {path}: database or disk is full; "),
            Store.open(path),
        ):
            try:
                raise full
            except sqlite3.Error as error:
                raise RuntimeError("(sqlite3.OperationalError) in a long statement") from error

    def test_other_errors_pass(self, path: Path) -> None:
        with pytest.raises(RuntimeError, match="other"), Store.open(path):
            raise RuntimeError("other")

    def test_no_space_for_the_lock(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(*_: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patched:
            patched.setattr(os, "write", full)
            said = f"cannot write {path}.lock: No space left on device; free space there"
            assert refusal(path).startswith(said)
        with Store.open(path) as store:
            assert store.check() == []


class TestPlace:
    TABLE = (
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "30 22 0:50 / /home rw shared:2 - nfs4 server:/home rw,vers=4.2\n"
        "31 30 8:2 / /home/me/local\\040disk rw - xfs /dev/sdb1 rw\n"
        "32 22 0:51 / /mnt/s rw - fuse.sshfs host:/ rw\n"
        "33 22 0:52 / /mnt/c rw master:3 propagate_from:4 - cifs //host/c rw\n"
        "34 22 0:53 / /mnt/l rw - lustre 10.0.0.1:/l rw\n"
        "35 22 0:54 / /mnt/twice rw - ext4 /dev/sdc rw\n"
        "36 35 0:55 / /mnt/twice rw - nfs server:/x rw\n"
    )

    @pytest.mark.parametrize(
        ("path", "kind"),
        [
            ("/t.db", None), ("/home/me/t.db", "nfs4"), ("/home/me/local disk/t.db", None),
            ("/homework/t.db", None),
            ("/mnt/s/t.db", "fuse.sshfs"), ("/mnt/c/t.db", "cifs"), ("/mnt/l/a/b/t.db", "lustre"),
            ("/mnt/twice/t.db", "nfs"),
        ],
    )  # fmt: skip
    def test_network_file_systems_are_known(self, path: str, kind: str | None) -> None:
        assert lock.network_file_system(Path(path), self.TABLE) == kind

    def test_a_network_file_system_is_refused_in_a_sentence(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = f"1 0 0:1 / {path.parent} rw - nfs4 server:/ rw\n"
        monkeypatch.setattr(lock, "_mount_table", lambda: table)
        for write in (True, False):
            said = refusal(path, write)
            assert "t.db is on a network file system (nfs4), where " in said
            assert "; give a file on a local disk with --db" in said
        assert list(path.parent.iterdir()) == []

    def test_the_table_of_this_machine_is_read(self, tmp_path: Path) -> None:
        lock.refuse_network(tmp_path / "t.db")
        assert lock._mount_table().count(" - ") > 0

    @pytest.mark.parametrize(
        ("place", "why"),
        [("/proc/t.db", "No such file|Permission"), ("/no/folder/t.db", "No such file")],
    )
    def test_a_folder_that_cannot_be_written(self, place: str, why: str) -> None:
        hint = "; give a file in a folder that can be written, with --db"
        assert re.fullmatch(f"cannot write {place}: ({why}).*{hint}", refusal(Path(place)))

    @pytest.mark.parametrize("write", [True, False])
    @pytest.mark.parametrize(
        ("name", "why"),
        [
            ("loop", "Too many levels of symbolic links"),
            ("pipe", "it is a pipe or a device, not a file"),
            ("folder", "Is a directory"),
        ],
    )
    def test_what_is_no_file_is_refused_and_not_waited_for(
        self, tmp_path: Path, name: str, why: str, write: bool
    ) -> None:
        (tmp_path / "loop").symlink_to(tmp_path / "loop")
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "folder").mkdir()
        said = f"{tmp_path}/{name} is no database: {why}; give a file with --db"
        assert refusal(tmp_path / name, write) == said

    def test_a_missing_database_cannot_be_read(self, path: Path) -> None:
        said = refusal(path, write=False)
        assert f"there is no database {path}; `tftune search` makes one" in said
        assert not path.exists()


def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits says so after 0.05 s rather than 2, and gives up after 0.2 s."""
    assert (patience.SAID_S, patience.LIMIT_S) == (2.0, 25.0), "a command ends within 30 s"
    monkeypatch.setattr(patience, "SAID_S", 0.05)
    monkeypatch.setattr(patience, "LIMIT_S", 0.2)


def said(path: Path) -> str:
    return f"{path} is locked by another program: waits for its commit; gives up after 0.2 s"


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Another program is in the middle of a transaction."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@pytest.mark.parametrize("opened", [True, False], ids=["while open", "while opening"])
def test_who_waits_for_a_lock_says_so(
    path: Path, opened: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After 2 s, shortened here, it says what it waits for; where the lock stays, what to do."""
    in_haste(monkeypatch)
    Store.open(path).close()
    with ExitStack() as stack:
        store = stack.enter_context(Store.open(path)) if opened else None
        with (
            written(path),
            pytest.raises(StoreError, match=r"another program, and stayed so for 0\.2 s;"),
        ):
            store.add_run(RUN) if store else Store.open(path)
        assert [record.getMessage() for record in caplog.records] == [said(path)]
        store = store or stack.enter_context(Store.open(path))
        store.add_run(RUN)
        assert store.runs() == [RUN]


def test_optuna_waits_for_a_lock_and_says_so(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It has a connection of its own to the same file."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    in_haste(monkeypatch)
    with (
        pytest.raises(StoreError, match=r"another program, and stayed so for 0\.2 s;"),
        Store.open(path) as store,
    ):
        store.add_run(RUN)
        study = optuna.create_study(storage=store.optuna_storage())
        with written(path):
            study.ask()
    assert [record.getMessage() for record in caplog.records] == [said(path)]


def test_the_service_waits_for_a_lock_and_says_so(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from sqlalchemy.exc import DBAPIError

    from tftune.serve.database import Database
    from tftune.serve.tokens import create, listed

    in_haste(monkeypatch)
    database = Database.open(str(path))
    with written(path), pytest.raises(DBAPIError) as error:
        create(database, "me", ["read"])
    assert [record.getMessage() for record in caplog.records] == [said(path)]
    refusal = str(database.refusal(error.value))
    assert refusal.count(";") == 1 and "locked; end the process that writes it" in refusal
    create(database, "me", ["read"])
    assert len(listed(database)) == 1
    database.close()


def test_who_gets_the_lock_in_time_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is tried again is done once: each row of a statement of many, and every commit."""
    monkeypatch.setattr(patience, "SAID_S", 0.05)
    with (
        closing(sqlite3.connect(path, factory=patience.PatientConnection)) as ours,
        closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other,
    ):
        ours.executescript("CREATE TABLE numbers (n); INSERT INTO numbers VALUES (-3), (-2), (-1)")
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.3, other.execute, ["ROLLBACK"])
        release.start()
        ours.executemany("INSERT INTO numbers VALUES (?)", ((n,) for n in range(3)))
        release.join()
        reader = other.execute("SELECT n FROM numbers")  # delays a commit without WAL
        assert reader.fetchone() == (-3,)
        release = threading.Timer(0.3, reader.close)
        release.start()
        ours.commit()
        release.join()
        assert [n for (n,) in ours.execute("SELECT n FROM numbers")] == [-3, -2, -1, 0, 1, 2]
    assert len(caplog.records) == 2
