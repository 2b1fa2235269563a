"""ruff and mypy --strict are clean."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest


def run(*command: str, cwd: Path) -> tuple[int, str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run([sys.executable, "-m", *command], cwd=cwd, text=True, **pipes)
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    "arguments", [("check",), ("format", "--check", "--diff")], ids=["check", "format"]
)
def test_ruff(root: Path, arguments: tuple[str, ...]) -> None:
    code, output = run("ruff", *arguments, ".", cwd=root)
    assert code == 0, output


def link_tree(root: Path, into: Path) -> Path:
    """A folder `tftune/` of links with the installed shape: without it mypy finds only the files of
    tftune/ and checks little else."""
    package = into / "tftune"
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    table = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]
    for name, folder in table["package-dir"].items():
        (package / name.removeprefix("tftune.")).symlink_to(root / folder, target_is_directory=True)
    for path in (root / "tftune").iterdir():
        (package / path.name).symlink_to(path)
    return package


def mypy(root: Path, tree: Path) -> tuple[int, str]:
    """Run from inside the tree, so that `tftune` there is found before any other. The cache stays
    in build/."""
    settings = f"--config-file={root}/pyproject.toml", f"--cache-dir={root}/build/mypy"
    return run("mypy", "--strict", *settings, "-p", "tftune", cwd=tree)


def test_mypy_strict(root: Path) -> None:
    tree = root / "build/typed"
    package = link_tree(root, tree)
    folders = [package, *(path for path in package.iterdir() if path.is_dir())]
    sources = sum(
        len(list(folder.glob("*.py" if folder == package else "**/*.py"))) for folder in folders
    )
    code, output = mypy(root, tree)
    assert code == 0, output
    # A folder of data counts as one more to mypy, since it could be a namespace package.
    assert int(output.split(" source files")[0].split()[-1]) >= sources > 40


def test_mypy_sees_every_room(tmp_path: Path, root: Path) -> None:
    """A type error planted beside a room's files is reported: the tree is really read."""
    (tmp_path / "tftune/db").mkdir(parents=True)
    (tmp_path / "tftune/__init__.py").touch()
    (tmp_path / "tftune/db/__init__.py").write_text("x: int = 'text'\n")
    code, output = mypy(root, tmp_path)
    assert code == 1 and "tftune/db/__init__.py:1: error" in output
