"""A deadline inside a process: who passes it is named and ends, whatever the main thread does."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tftune.tuner.bench.watchdog import EXIT_CODE

START = "import time; from tftune.tuner.bench.watchdog import deadline\n"
WAITS = {
    "sleeps": "time.sleep(60)",
    "spins in Python": "while True: pass",
    "waits for a child": "import subprocess; subprocess.run(['sleep', '5'])",
    "holds back exceptions": "try: time.sleep(60)\n    finally: time.sleep(60)",
}


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", START + code], capture_output=True, text=True)


@pytest.mark.parametrize("wait", WAITS.values(), ids=list(WAITS))
def test_who_passes_it_is_named_and_ends(wait: str) -> None:
    done = python(f"with deadline(0.3, 'too late', lambda: print('told')):\n    {wait}")
    assert done.returncode == EXIT_CODE
    assert done.stderr == "too late\n"


def test_what_must_be_written_is_written_before_the_end() -> None:
    tell = "import os; tell = lambda: os.write(1, b'written')\n"
    assert python(f"{tell}with deadline(0.2, 'x', tell): time.sleep(60)").stdout == "written"


def test_it_ends_even_where_that_fails() -> None:
    done = python("with deadline(0.2, 'too late', lambda: 1 / 0): time.sleep(60)")
    assert done.returncode == EXIT_CODE and done.stderr.startswith("too late")


@pytest.mark.parametrize("inside", ["pass", "raise KeyError"])
def test_what_ends_in_time_goes_on(inside: str) -> None:
    code = f"""
try:
    with deadline(0.3, 'too late', lambda: None):
        {inside}
except KeyError:
    pass
time.sleep(0.6)
print('went on')
"""
    done = python(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "went on\n", "")
