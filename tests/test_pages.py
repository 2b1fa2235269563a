"""Pages that a script makes are current, and what the pages list is what the code has."""

from __future__ import annotations

import ast
import html
import json
import re
import tomllib
from pathlib import Path
from runpy import run_path
from statistics import geometric_mean
from typing import Any

import pytest
import speedup
import yaml
from command_line import programs

from tftune.kernels.core.registry import operation

ROOT = Path(__file__).resolve().parent.parent
CODE = ("tftune", "kernels", "tuner", "db", "models", "studies", "benchmarks")
DIAGRAMS = ("flags", "flow", "selecting", "taxes")


def sections(page: str) -> dict[str, set[str]]:
    """The options that the page lists, by command."""
    found: dict[str, set[str]] = {}
    for part in re.split(r"^#+ (?=`tftune)", page, flags=re.MULTILINE)[1:]:
        found[part.split("`")[1]] = set(re.findall(r"^\* `(--[a-z-]+)", part, re.MULTILINE))
    return found


def options(command: Any) -> set[str]:
    words = {text for one in command.params for text in (*one.opts, *one.secondary_opts)}
    return {text for text in words if text.startswith("--")} - {"--help"}


def test_the_page_of_commands_has_every_command_and_option_and_no_other() -> None:
    """By name, and by the words of its help: the layout of the page is typer's."""
    page = (ROOT / "docs/commands.md").read_text()
    (_, _), *below = programs()
    known = {path: options(command) for path, command in below}
    assert sections(page) == known, "run `python docs/commands.py > docs/commands.md`"
    page = " ".join(page.replace("\\", "").split())
    said = [text for _, each in below for text in (each.help, *map(help_of, each.params))]
    ours = {" ".join(text.split()) for text in said if text} - {"Show this message and exit."}
    assert len(ours) > 50
    assert [text for text in ours if text not in page] == [], (
        "run `python docs/commands.py > docs/commands.md`"
    )


def help_of(option: Any) -> str:
    return getattr(option, "help", None) or ""


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_is_what_its_script_draws(name: str) -> None:
    text = (ROOT / f"docs/diagrams/{name}.svg").read_text()
    said = text.partition("<dc:description>")[2].partition("</dc:description>")[0]
    drawn = run_path(str(ROOT / "docs/draw.py"))["SAYS"][name]
    assert html.unescape(said) == json.dumps(drawn), "run `python docs/draw.py`"


def test_there_is_no_other_diagram_and_each_is_shown() -> None:
    assert sorted(path.stem for path in (ROOT / "docs/diagrams").iterdir()) == list(DIAGRAMS)
    pages = "".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    assert [name for name in DIAGRAMS if f"](diagrams/{name}.svg)" not in pages] == []


def variables(source: str) -> set[str]:
    """Environment variables that a file reads or sets by name: keys of `environ`, arguments of
    `getenv`, `envvar=`, and words that start as such a variable of a library does."""
    found = set(re.findall(r"environ(?:\.get\(|\[|\.setdefault\()\s*\"([A-Z_]+)\"", source))
    found |= set(re.findall(r"(?:getenv\(|envvar=)\s*\"([A-Z_]+)\"", source))
    words = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    known = r"(TFTUNE|TRITON|TORCH|TORCHINDUCTOR|NCCL|CUDA|HIP|HSA|OMP|ROCM)_[A-Z_]+|PYTHONPATH"
    return found | {word for word in words if isinstance(word, str) and re.fullmatch(known, word)}


def test_the_page_of_the_environment_lists_every_variable_that_the_code_reads() -> None:
    page = (ROOT / "docs/environment.md").read_text()
    read = {
        name: path.relative_to(ROOT).as_posix()
        for folder in CODE
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name in variables(path.read_text())
    }
    assert {"TFTUNE_DB", "TFTUNE_DEBUG", "NCCL_DEBUG", "HIP_VISIBLE_DEVICES"} <= read.keys()
    assert {name: file for name, file in read.items() if not re.search(rf"\b{name}\b", page)} == {}


def test_a_variable_is_found_however_it_is_read() -> None:
    read = 'os.environ["A_B"]; os.environ.get("C"); os.getenv("D"); f(envvar="E")'
    assert variables(read) == {"A_B", "C", "D", "E"}
    assert variables('names = {"NCCL_X": "0", "OTHER_X": 1}') == {"NCCL_X"}


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["version"] == project["version"] and citation["license"] == project["license"]
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()


@pytest.mark.parametrize("image", ["cuda", "rocm"])
def test_an_image_installs_an_extra_that_exists_runs_doctor_and_says_it_was_not_built(
    image: str,
) -> None:
    text = (ROOT / f"docker/{image}.Dockerfile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (asked,) = re.findall(r"'\.\[([a-z,]+)\]'", text)
    assert set(asked.split(",")) <= project["optional-dependencies"].keys()
    assert 'CMD ["tftune", "doctor"]' in text and "Not built here" in text
    page = (ROOT / "docs/containers.md").read_text()
    assert f"docker build -f docker/{image}.Dockerfile" in page and "not built here" in page


def test_every_page_is_in_the_contents_of_the_site() -> None:
    listed = re.findall(r"^([a-z0-9-]+)$", (ROOT / "docs/index.md").read_text(), re.MULTILINE)
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert sorted(listed) == sorted(pages)


def headline(op: str, name: str, **options: str) -> tuple[str, str]:
    """The geometric mean of BSP / winner over a captured set on 8x H200, and how many it is of."""
    shapes = operation(op).shape_sets[name](world=8, **options)
    rows = [trial for trial in speedup.read("h200x8", op) if trial.shape in shapes]
    found = [speedup.speedup(line.winner) for line in speedup.lines(rows, "graph")]
    return f"{geometric_mean(found):.2f}", str(len(found))


def test_the_headline_of_the_readme_is_what_the_rows_say() -> None:
    said = (
        r"([\d.]+) times as fast as BSP over (\d+) GEMM shapes [^.]* along K, "
        r"([\d.]+) over (\d+) along tokens, ([\d.]+) over (\d+) decode shapes"
    )
    (found,) = re.findall(said, " ".join((ROOT / "README.md").read_text().split()))
    assert found[:2] == headline("all_gather_gemm", "paper")
    assert found[2:4] == headline("all_gather_gemm", "paper", shard="m")
    assert found[4:] == headline("flash_decode", "llama3-70b")
