"""Wheel and sdist hold what they should, under no name but `tftune`, and a server that only selects
needs nothing else."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import page_commands
import pytest
import shipped
from command_line import ENDED, IN_TURN, OP
from page_commands import User

from tftune.models.artifact import SHIPPED

ROOMS = ("tftune", "kernels", "tuner", "db", "models", "studies")
NOT_SOURCE = (
    ".venv", ".git", ".whl", "build", "dist", "*.egg-info", "__pycache__", ".*_cache",
    ".hypothesis", "*.db", "*.db-*",
)  # fmt: skip
ABOUT = "tftune-0.1.0.dist-info"


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def files(root: Path, folder: str, pattern: str = "*.py") -> set[str]:
    return {path.relative_to(root).as_posix() for path in (root / folder).rglob(pattern)}


def sources(root: Path) -> set[str]:
    return set().union(*(files(root, room) for room in ROOMS))


def test_every_folder_with_source_is_listed_as_a_package(root: Path) -> None:
    """One without `__init__.py` would be missing from the wheel although it works in a checkout."""
    table = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]
    names = {folder: package for package, folder in table["package-dir"].items()}
    assert names.keys() == {*ROOMS} - {"tftune"}
    folders = {Path(name).parent for name in sources(root)}
    parts = [folder.parts for folder in folders]
    packages = [".".join([names.get(first, first), *rest]) for first, *rest in parts]
    assert sorted(table["packages"]) == sorted(packages)
    assert [folder for folder in folders if not (root / folder / "__init__.py").exists()] == []


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel built from it. No network is used."""
    place = tmp_path_factory.mktemp("built")
    tree = place / "tree"
    shutil.copytree(root, tree, ignore=shutil.ignore_patterns(*NOT_SOURCE))
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", place, ".", cwd=tree)
    return place


def wheel(built: Path) -> zipfile.ZipFile:
    (path,) = built.glob("*.whl")
    return zipfile.ZipFile(path)


def about(built: Path, name: str) -> str:
    """A file of what the wheel says of itself."""
    return wheel(built).read(f"{ABOUT}/{name}").decode()


def test_the_wheel_holds_every_source_file_and_nothing_beside_tftune(
    root: Path, built: Path
) -> None:
    names = wheel(built).namelist()
    held = sources(root) | files(root, "models/artifacts", "*.json")
    held |= files(root, "tftune/serve/templates", "*") | {"studies/nodes/published.json"}
    expected = {name if name.startswith("tftune/") else f"tftune/{name}" for name in held}
    assert {name for name in names if ".dist-info/" not in name} == expected | {"tftune/py.typed"}
    assert {name.split("/")[0] for name in names} == {"tftune", ABOUT}


def test_artifacts_are_json_alone(root: Path) -> None:
    """What selects is made from the file when it is loaded: code beside it would be of another file
    one day."""
    folder = root / "models/artifacts"
    assert files(folder, ".", "*.py") == {"__init__.py"} and len(shipped.PATHS) > 1
    assert {*folder.glob("*.json")} == {*shipped.PATHS}
    assert (folder / "__init__.py").read_text().count("\n") <= 1


def test_the_wheel_carries_licence_and_command_and_needs_nothing(built: Path) -> None:
    assert "tftune = tftune.__main__:main" in about(built, "entry_points.txt")
    assert "The tftune authors" in about(built, "licenses/LICENSE")
    needed = [line for line in about(built, "METADATA").splitlines() if "Requires-Dist" in line]
    assert needed and [line for line in needed if "extra ==" not in line] == []


def test_the_sdist_holds_tests_and_pages(root: Path, built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    pages = {
        "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "constraints.txt",
        "docs/knobs.md", "examples/README.md", "examples/ranks.py", ".ci/run",
    }  # fmt: skip
    assert files(root, "tests") | files(root, "db/trials", "*.jsonl") | pages <= names
    assert not [name for name in names if "__pycache__" in name or name.endswith((".db", ".pyc"))]


def environment(built: Path, name: str) -> Path:
    """The Python of a fresh virtual environment that holds the wheel and nothing else, not even
    pip."""
    run(sys.executable, "-m", "venv", "--without-pip", built / name, cwd=built)
    python = built / name / "bin/python"
    (found,) = built.glob("*.whl")
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", found, cwd=built)
    return python


@pytest.fixture(scope="module")
def bare(built: Path) -> Path:
    python = environment(built, "bare")
    listing = "import importlib.metadata as m; print(*(d.name for d in m.distributions()))"
    assert run(python, "-c", listing, cwd=built).split() == ["tftune"]
    return python


SELECT = """
import sys, tftune
from tftune import AllGatherGemm, FlashDecode
selector = tftune.use(tftune.load(target="h200x8"))
gemm, other = AllGatherGemm(64, 3584, 8192, 8), AllGatherGemm(96, 3584, 8192, 8)
for shape in (gemm, other, FlashDecode(8, 64, 8, 128, 9000, 8)):
    for mode in ("graph", "eager"):
        selection = selector.select(shape, mode=mode)
        assert tftune.select_kernel(shape, mode) is selection
        print(selection.source, "|", selection.config, "|", selection.reason)
"""
ALONE = """
foreign = {name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)
assert foreign <= {"tftune", "__main__"}, foreign
"""


def test_a_bare_install_selects(root: Path, bare: Path, built: Path) -> None:
    """Measured shapes and others, of both operations, as a checkout does."""
    told = run(bare, "-c", SELECT + ALONE, cwd=built)
    words = [line.split(" | ") for line in told.splitlines()]
    assert [word for word, *_ in words] == ["measured"] * 2 + ["interpolated"] * 4
    assert all("(" in config for _, config, _ in words)
    assert told == run(sys.executable, "-c", SELECT, cwd=root)


def test_the_command_of_a_bare_install(bare: Path, built: Path) -> None:
    """It selects and examines the machine; the other commands say which extra they need."""
    command = bare.parent / "tftune"
    asked = ("select", "all_gather_gemm", "m=64,n=3584,k=8192,world=8", "--target", "h200x8")
    assert "measured, on this very shape" in run(command, *asked, cwd=built)
    assert "tftune 0.1.0" in run(command, "doctor", cwd=built)
    done = subprocess.run([command, "search"], cwd=built, text=True, capture_output=True)
    assert done.returncode == 2 and "pip install '.[tune]'" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def installed(built: Path) -> Path:
    """The Python of a fresh virtual environment with the wheel. It finds every dependency where the
    tests' own Python does, but no checkout."""
    python = environment(built, "installed")
    (site,) = (built / "installed/lib").glob("python*/site-packages")
    beside = [path for path in sys.path if path.endswith("site-packages")]
    (site / "beside.pth").write_text("\n".join(beside))
    return python


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands of one user run, one after the other."""
    return tmp_path_factory.mktemp("empty")


SHAPE = "m=64,n=3584,k=8192,world=8"
SEARCH = (
    f"search {OP} --on model --target h200x8 --shapes {SHAPE};m=512,n=3584,k=8192,world=8 "
    "--mode graph --effort quick --pool 20 --variant push"
)
IMPORTS = """
import importlib, pkgutil, tftune
names = [found.name for found in pkgutil.walk_packages(tftune.__path__, "tftune.")]
for name in names:
    if not name.startswith("tftune.serve.migrations"):  # run by alembic, inside a migration
        importlib.import_module(name)
print(tftune.__file__, len(names))
"""


@pytest.mark.thorough
def test_each_module_of_an_installed_tftune_imports(installed: Path, empty: Path) -> None:
    where, count = run(installed, "-c", IMPORTS, cwd=empty).split()
    assert Path(where).is_relative_to(installed.parent.parent) and int(count) > 150


@pytest.mark.thorough
def test_an_installed_tftune_does_the_main_job_in_an_empty_folder(
    installed: Path, empty: Path
) -> None:
    """Without the committed rows of a checkout, which are an extra to a search."""
    assert "beats BSP on" in run(installed.parent / "tftune", *SEARCH.split(), cwd=empty)
    asked = f"{OP} {SHAPE} --artifact a.json --allow-modelled"
    said = {
        f"train {OP} --target h200x8": "2 shapes",
        f"export {OP} --target h200x8 --out a.json": "modelled",
        f"select {asked}": "modelled, not measured",
        f"explain {asked}": "modelled, not measured",
        "report --out report": ".html",
        f"tune {OP} --show h200x8": f"tftune search {OP}",
        "db check": "is sound",
        "doctor": "",
    }
    lines = json.dumps([line.split() for line in said])
    *found, examined = run(installed, "-c", IN_TURN, lines, cwd=empty).split(ENDED)
    for line, words, printed in zip(said, said.values(), found, strict=False):
        assert words in printed, line
    assert len(found) == len(said) - 1 and "no artifact" not in examined
    assert list((empty / "report").glob("*.html"))


def test_what_stands_for_a_command_is_of_a_page_and_is_the_same_command() -> None:
    from test_docs import commands

    printed = {line for page in page_commands.PAGES for line in page_commands.commands(page)}
    assert page_commands.REHEARSED.keys() - printed == set()
    assert [
        line
        for line, (why, run) in page_commands.REHEARSED.items()
        if not why or (run and not page_commands.same_command(line, run, commands()))
    ] == []


def test_pages_install_extras_that_the_wheel_has(built: Path) -> None:
    metadata = about(built, "METADATA")
    asked = [
        extra
        for page in page_commands.PAGES
        for line in page_commands.commands(page)
        for extras in re.findall(r"pip install '\.\[(.+)\]'", line)
        for extra in extras.split(",")
    ]
    assert len(asked) >= 4
    assert [extra for extra in asked if f"Provides-Extra: {extra}\n" not in metadata] == []


@pytest.fixture(scope="module")
def user(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    found = User(tmp_path_factory.mktemp("user"), installed)
    found.server.start()
    yield found
    found.server.end(signal.SIGTERM)


@pytest.mark.thorough
def test_the_service_page_runs_as_printed(user: User) -> None:
    """The job is the one that the service names. What is built of few rows is refused by the gate,
    so that the artifact that ships is promoted."""
    user.shell(*page_commands.to_run(page_commands.SERVICE, words(user)))
    *before, build, wait, promote, pull = (
        line.replace("tft_...", user.environment["TFTUNE_TOKEN"]).replace("8377", str(user.port))
        for line in page_commands.script(page_commands.SERVICE)
    )
    said = user.shell(*before, build)
    (job,) = re.findall(r'"job":"(\w+)"', said)
    assert f'"stored":{user.rows}' in said
    ended = f"until {wait.replace('JOB', job)} | grep -E 'done|failed'; do sleep 0.5; done"
    promote = promote.replace('"digest":"..."', f'"digest":"{user.placed}"')
    asking = [line for line in before if re.match(r"export|AT=|ask\(\)", line)]
    said = user.shell(*asking, ended, promote, pull)
    assert '"state":"done"' in said
    artifact = json.loads((user.home / "flash_decode__h200x8.json").read_text())
    assert artifact.get("sha256") == user.placed, said


def words(user: User) -> dict[str, str]:
    """What a reader writes for the words in capitals."""
    artifact = str(SHIPPED / f"{OP}__h200x8.json")
    return {
        "OP": OP, "SHAPE": SHAPE, "FILE": "rows.jsonl", "KEY": "release.key", "NAME": "h100x2",
        "A": artifact, "B": artifact, "ARTIFACT": artifact,
        "ID": user.token("read").split("_")[1],
    }  # fmt: skip


@pytest.mark.parametrize(
    "page",
    [
        page
        if page == page_commands.FIRST_MINUTE
        else pytest.param(page, marks=pytest.mark.thorough)
        for page in page_commands.PAGES[:-1]
    ],
)
def test_the_commands_of_a_page_run_as_printed(page: str, user: User) -> None:
    """Where a command needs more than a wheel, what stands for it."""
    folder = user.home / Path(page).stem
    folder.mkdir()
    for name in (".venv", "config.json"):
        (folder / name).symlink_to(user.home / name)
    assert page_commands.script(page) == []
    user.shell(*page_commands.to_run(page, words(user)), folder=folder)


def test_the_python_of_the_quickstart_runs_in_a_bare_install(bare: Path, built: Path) -> None:
    (code,) = page_commands.python(page_commands.QUICKSTART)
    assert "measured" in run(bare, "-c", code, cwd=built)
