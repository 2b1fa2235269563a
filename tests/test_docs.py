"""The pages say what the program does: commands, knobs, links and examples are tested over the
code."""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import linecache
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import programs

import tftune
from tftune.kernels.core.chips import CHIPS
from tftune.kernels.core.registry import OPS, operation
from tftune.kernels.core.space import Choice, Rule
from tftune.tuner.calibration.assumptions import RULES

ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")),
)


def modules() -> list[str]:
    """The imported name of every source file, but `__main__`, which would run the command."""
    rooms = ("tftune", "kernels", "tuner", "db", "models", "studies")
    files = [
        path.relative_to(ROOT).with_suffix("").parts
        for room in rooms
        for path in (ROOT / room).rglob("*.py")
    ]
    names = (
        ".".join(parts if parts[0] == "tftune" else ("tftune", *parts))
        for parts in sorted(files)
        if parts[-1] != "__main__"
    )
    return [name.removesuffix(".__init__") for name in names]


@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings(name: str) -> None:
    module = importlib.import_module(name)
    # doctest iterates over linecache; a finalizer of SQLAlchemy may drop a line of it meanwhile.
    linecache.clearcache()
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


@pytest.mark.parametrize("name", OPS)
def test_every_choice_rule_and_feature_says_what_it_is(name: str) -> None:
    op = operation(name)
    choices: list[Choice] = [choice for choices in op.space.variants.values() for choice in choices]
    rules: tuple[Rule, ...] = op.space.rules
    assert choices and rules and OPS[name].strip()
    assert [choice.name for choice in choices if len(choice.meaning.split()) < 3] == []
    assert [rule for rule in rules if len(rule.sentence.split()) < 4] == []
    features = op.module("features").FEATURES
    assert [feature for feature, (meaning, _) in features.items() if not meaning.strip()] == []
    assert set().union(*(rule.variants for rule in rules)) <= set(op.space.variants)


def test_the_page_of_knobs_is_fresh() -> None:
    printed = subprocess.run(
        [sys.executable, ROOT / "docs/generate.py"], text=True, capture_output=True, check=True
    ).stdout
    assert (ROOT / "docs/knobs.md").read_text() == printed, (
        "run `python docs/generate.py > docs/knobs.md`"
    )


def commands() -> list[str]:
    """Every command of the program; those of a group as `trials import`."""
    return [
        path.removeprefix("tftune ")
        for path, command in programs()
        if not hasattr(command, "commands")
    ]


def test_every_command_has_a_place_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [name for name in commands() if f"tftune {name}" not in readme] == []


def named_commands(page: str) -> set[str]:
    """First words after `tftune` in a page's code: what a reader would type."""
    code = re.findall(r"```.*?```|`[^`\n]+`", page, re.DOTALL)
    return {
        word
        for part in code
        for word in re.findall(r"(?:^|[\s`/])tftune ([a-z]+)", part, re.MULTILINE)
    }


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_only_commands_that_exist(page: str) -> None:
    assert named_commands((ROOT / page).read_text()) <= {name.split()[0] for name in commands()}


def test_an_unknown_command_on_a_page_is_found() -> None:
    page = "Run `tftune serach x`.\n```sh\n.venv/bin/tftune train y\n```\ntftune is good"
    assert named_commands(page) == {"serach", "train"}


def links(text: str) -> list[str]:
    """Relative targets of Markdown links and pictures, without their anchors."""
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    return [target.partition("#")[0] for target in targets if not re.match(r"[a-z]+:|#", target)]


@pytest.mark.parametrize("page", PAGES)
def test_relative_links_lead_somewhere(page: str) -> None:
    file = ROOT / page
    assert file.read_text().strip()
    targets = links(file.read_text())
    assert [target for target in targets if not (file.parent / target).exists()] == []


def test_links_are_found() -> None:
    assert links("[a](docs/a.md#b) ![p](x.png) [w](https://x.y) [c](#d)") == ["docs/a.md", "x.png"]


def test_the_makefile_lists_its_targets() -> None:
    printed = subprocess.run(
        ["make", "--no-print-directory"], cwd=ROOT, text=True, capture_output=True, check=True
    ).stdout
    targets = "help search test drill thorough artifacts mutants fleet engines newest docs clean"
    assert {line.split()[1] for line in printed.splitlines()} == {*targets.split()}


def test_the_makefile_refuses_an_old_python(tmp_path: Path) -> None:
    old = tmp_path / "python3.9"
    program = "import sys; sys.version_info = (3, 9); exec(sys.argv[1])"
    old.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{program}" "$2"\n')
    old.chmod(0o755)
    (tmp_path / "pyproject.toml").touch()
    command = ["make", "-f", str(ROOT / "Makefile"), f"PYTHON={old}", "search"]
    done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True)
    assert done.returncode != 0
    assert "needs Python 3.11 or newer" in done.stderr and "3.9" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_the_page_of_machines_lists_every_chip() -> None:
    """Its names, whether it has a model, and how many of its constants are assumed."""
    text = (ROOT / "docs/machines.md").read_text()
    rows = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}
    assert CHIPS.keys() <= rows.keys()
    for name, chip in CHIPS.items():
        model = "off" if chip.missing(2) else "on"
        count = "-" if not chip.assumed else f"{len(chip.assumed)} "
        start = f"| `{name}` | {', '.join(chip.gpu_names)} | {model} | {count}"
        assert rows[name].startswith(start), start


def test_the_page_of_machines_lists_every_assumption() -> None:
    text = (ROOT / "docs/machines.md").read_text()
    assert all(f"`{name}`" in text for name in RULES)


@pytest.mark.parametrize("page", PAGES)
def test_what_examples_take_from_tftune_exists(page: str) -> None:
    for code in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("tftune"):
                module = importlib.import_module(str(node.module))
                assert all(hasattr(module, alias.name) for alias in node.names), ast.unparse(node)
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "tftune":
                assert hasattr(tftune, node.attr), node.attr


def test_the_readme_s_first_table_is_what_was_measured() -> None:
    """torch.compile's time over ours of transformers' models, by case."""
    readme, starts = (ROOT / "README.md").read_text(), []
    shown = ("decode 1", "decode 16", "decode 64", "decode 200", "prefill 1024", "prefill 4096")
    for stem, title, note in (
        ("transformers-llama3.1-8b", "Llama 3.1 8B", ""),
        ("transformers-qwen2.5-7b", "Qwen2.5-7B", ""),
        ("shipped-qwen2.5-14b", "Qwen2.5-14B", ", as shipped"),
    ):
        for path in (ROOT / "db/tuned").glob(f"{stem}-*.json"):
            found, (chip, gpus) = json.loads(path.read_text()), path.name.split("-")[-4].split("x")
            cases, seconds = found["cases"], found["seconds"]
            ratios = [f"{cases[name]['plain_us'] / cases[name]['pass_us']:.2f}" for name in shown]
            row = f"| {title}, {gpus}x {chip.upper()}{note} | {' | '.join(ratios)} |"
            assert row in readme
            if "first" in seconds:
                begun = seconds["first"] - seconds["plain"]
                starts.append((begun, seconds["second"] - seconds["plain again"]))
    first_s, second_s = zip(*starts, strict=True)
    assert f"took {min(first_s):.0f} to {max(first_s):.0f} s more at" in readme
    assert f"took {min(second_s):.1f} to {max(second_s):.1f} s more." in readme
