"""The help is quick, says something of every command and option, and its words are those of the
code behind it."""

from __future__ import annotations

import subprocess
import sys
from typing import get_args, get_type_hints

from command_line import programs


def test_help_is_quick_and_loads_nothing_heavy() -> None:
    script = "import sys; from tftune import cli; print(*sorted(sys.modules))"
    loaded = set(subprocess.check_output([sys.executable, "-c", script], text=True).split())
    heavy = {"torch", "triton", "optuna", "sklearn", "numpy", "matplotlib"}
    assert loaded & (heavy | {"sqlite_utils", "sqlalchemy"}) == set()


def test_every_command_and_option_has_help() -> None:
    said = {path: command.help for path, command in programs()}
    said |= {
        f"{path} {each.name}": getattr(each, "help", None)
        for path, command in programs()
        for each in command.params
    }
    assert len(said) > 150 and [path for path, text in said.items() if not text] == []


def test_the_words_of_options_are_those_of_the_rooms() -> None:
    from tftune.cli.search_command import SearchOptions
    from tftune.db.trial import BENCHES, MODES
    from tftune.tuner.search.samplers import SAMPLERS
    from tftune.tuner.search.search import EFFORTS

    words = {name: {*get_args(hint)} for name, hint in get_type_hints(SearchOptions).items()}
    assert (words["effort"], words["sampler"]) == ({*EFFORTS}, {*SAMPLERS})
    assert (words["on"] | {"drill"}, words["mode"]) == ({*BENCHES}, {*MODES, "both"})
