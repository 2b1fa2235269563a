"""The list of `make mutants` fits the tree: each text is there once, and each test exists."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import run_mutants
from mutants import MUTANTS
from planted_fault import Mutant
from run_mutants import ROOT, planted, verdict
from source_text import replaced_once

ONE = Mutant("one", "a.py", "left == right", "left != right", "tests/test_a.py::test_b")


@cache
def node_ids_of(file: str) -> frozenset[str]:
    """Node ids of a file, without parameters."""
    tree = ast.parse((ROOT / file).read_text())
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    alone = [f"{file}::{node.name}" for node in tree.body if isinstance(node, ast.FunctionDef)]
    inside = [
        f"{file}::{kind.name}::{node.name}"
        for kind in classes for node in kind.body if isinstance(node, ast.FunctionDef)
    ]  # fmt: skip
    return frozenset((*alone, *inside))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_place_of_a_mutant_is_found_and_its_test_exists(mutant: Mutant) -> None:
    """Where a refactoring moved the text, move the mutant; do not drop it."""
    text = (ROOT / mutant.file).read_text()
    changed = planted(text, mutant)
    assert changed != text and ast.parse(changed)
    node, _, parameters = mutant.test.partition("[")
    assert node in node_ids_of(node.partition("::")[0])
    assert not parameters or parameters.endswith("]")


def test_each_mutant_has_a_name_and_a_fault_of_its_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.before, mutant.after) for mutant in MUTANTS}) == len(MUTANTS)
    folders = {mutant.file.partition("/")[0] for mutant in MUTANTS}
    assert folders >= {"kernels", "db", "tuner", "models", "tftune"}


@pytest.mark.parametrize(("text", "times"), [("", 0), ("left == right\n" * 2, 2)])
def test_a_text_that_is_not_there_once_is_refused(text: str, times: int) -> None:
    with pytest.raises(ValueError, match=rf"occurs {times} times in a\.py, not once"):
        planted(text, ONE)


@pytest.mark.parametrize(
    "layout",
    ["f(a, b[0], c)", "f(\n    a,\n    b[0],\n    c,\n)", "f(a, b[\n    0,\n], c\n)"],
)
def test_the_layout_of_a_text_does_not_hide_it(layout: str) -> None:
    """Each layout of the source is found by each layout of the mutant's text."""
    for old in ("f(a, b[0], c)", "f(\n  a,\n  b[0],\n  c,\n)"):
        assert replaced_once(f"left = {layout}\n", old, "g(a)") == "left = g(a)\n"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("    f(a)\n", "", "if x:\n    y = f(b)\nf(a)\n"),
        ("f(b)", "c", "if x:\n    y = c\n    f(a)\nf(a)\n"),
        ("    y = f(b)\n    f(a)", "    f(a)", "if x:\n    f(a)\nf(a)\n"),
    ],
)
def test_a_text_of_whole_lines_goes_with_its_indentation(old: str, new: str, expected: str) -> None:
    assert replaced_once("if x:\n    y = f(b)\n    f(a)\nf(a)\n", old, new) == expected


@pytest.mark.parametrize("source", ["notin", "f(a b)", "f(a), b", "if x: f(a, b)\n"])
def test_other_tokens_and_other_indentation_are_another_text(source: str) -> None:
    for old in ("not in", "    f(a, b)\n", "f(a, c)"):
        with pytest.raises(ValueError, match="occurs 0 times"):
            replaced_once(source, old, "")


@pytest.mark.parametrize(
    ("status", "output", "expected"),
    [
        (1, "E   assert 1 == 2\n", "killed: assert 1 == 2"),
        (0, "1 passed", "SURVIVED"),
        (None, "", "no verdict after 120 s: nothing printed"),
        (4, "ERROR: not found\n", "pytest ended with 4: ERROR: not found"),
    ],
)
def test_only_a_test_that_fails_kills_a_mutant(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, status: int | None, output: str, expected: str
) -> None:
    """Neither a hang, nor a test that cannot be collected. The file is as before afterwards."""
    file, seen = tmp_path / "a.py", list[str]()
    file.write_text("left == right\n")

    def run(*asked: object) -> tuple[int | None, str]:
        seen.append(file.read_text())
        return status, output

    monkeypatch.setattr(run_mutants, "run_tests", run)
    assert verdict(ONE, tmp_path) == expected
    assert seen == ["left != right\n"] and file.read_text() == "left == right\n"
    assert "occurs 0 times" in verdict(replace(ONE, before="up == down"), tmp_path)
