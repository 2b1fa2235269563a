"""Imports go one way, `import tftune` loads the standard library only, and kernel files never
import Iris."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

MAY_IMPORT = {
    "kernels": {"kernels"},
    "db": {"kernels", "db"},
    "tuner": {"kernels", "db", "tuner"},
    "models": {"kernels", "db", "models"},
    "tftune": {"kernels", "db", "tuner", "models", "tftune", "studies"},  # see RESERVED
    "studies": {"kernels", "db", "tuner", "models", "tftune", "studies"},
}


def named(folder: str, names: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}.py" for name in names.split())


STANDARD_LIBRARY_ONLY = (
    *("tftune/__init__.py", "*/__init__.py", "kernels/core/*.py", "tftune/client/*.py"),
    *named("kernels/*", "__init__ space rules workloads features timeline exchange mapping"),
    "kernels/*/lengths.py",
    *named("studies/taxes", "arms operations/*"),
    *named("db", "trial row_checks row_files target collectives lock files patience"),
    *named("db", "evidence verdict discount captured journal"),
    *named("models", "selector selection bracket chain artifact baselines layout answerer"),
    *named("models", "config_times gains surroundings features compatibility facts forms in_forms"),
    *named("models", "formula/formula tree/tree tree/codec tree/codegen"),
    *named("tftune", "recorder hot_swap loading agreement"),
)
"""A server that only selects loads these and nothing else."""

CLI = named("tftune/cli", "app artifact_commands options")
WITHOUT_TORCH = (
    *CLI,
    *("db/*.py", "models/**/*.py", "tuner/search/*.py"),
    *named("tuner/bench", "benches cache_selftest"),
)
"""Files of `make search`, which installs no torch."""

LAZY_IN_CLI = {
    *("torch", "triton", "iris", "optuna", "sklearn", "numpy", "scipy", "matplotlib"),
    *("sqlite_utils", "sqlalchemy"),
}
KERNEL_FILES = (
    "kernels/device/*.py",
    *named("kernels/comm", "ll_protocol copy_engine"),
    *named("kernels/*", "variants/* host reference"),
)
RESERVED = {
    "tftune.serve.": ("tftune/serve/", "tftune/cli/serve_commands.py"),
    "tftune.studies.": ("studies/", "tftune/cli/app.py", "tftune/cli/training_commands.py"),
    "tftune.cli.": ("tftune/cli/", "tftune/__main__.py", "studies/"),
}
"""Packages that few may import. The service: its own commands, so that nothing which dispatches
starts it. A study: the commands that show it, one of them a section of the report. The command
line: itself, since the service and Python callers call what it calls."""


@dataclass(frozen=True)
class Import:
    """One imported module, its line, and whether importing the file is enough to load it."""

    module: str
    line: int
    at_top: bool

    @property
    def library(self) -> str:
        return self.module.partition(".")[0]

    @property
    def room(self) -> str:
        """The room of a module of ours: `tftune.db.store` is in `db`, `tftune.cli.app` in
        `tftune`."""
        name = self.module.removeprefix("tftune.").partition(".")[0]
        return name if name in MAY_IMPORT else "tftune"


def module_name(file: str) -> str:
    """The imported name of a file: `db/store.py` is `tftune.db.store`."""
    parts = list(Path(file).with_suffix("").parts)
    parts = parts if parts[0] == "tftune" else ["tftune", *parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def names_of(node: ast.AST, file: str) -> list[str]:
    """What a node imports: of ours, names after `from ... import` too, since they may be files; and
    literal import_module calls."""
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom():
            base = node.module or ""
            if node.level:
                package = module_name(file).split(".")
                package += [""] * file.endswith("__init__.py")
                base = ".".join([*package[: len(package) - node.level], *([base] if base else [])])
            if base.partition(".")[0] != "tftune":
                return [base]
            parts = [f"{base}.{alias.name}" for alias in node.names]
            return parts if base == "tftune" else [base, *parts]
        case ast.Call(
            func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(str(name)) | ast.JoinedStr([ast.Constant(str(name)), *_]), *_],
        ):
            return [name.rstrip(".")]
    return []


def imports(node: ast.AST, file: str, at_top: bool = True) -> Iterator[Import]:
    """Every import below a node. Function bodies and `if TYPE_CHECKING` run later or never: they
    are not at the top."""
    for child in ast.iter_child_nodes(node):
        yield from (Import(name, child.lineno, at_top) for name in names_of(child, file))  # type: ignore[attr-defined]
        checking = "TYPE_CHECKING", "typing.TYPE_CHECKING"
        later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or (
            isinstance(child, ast.If) and ast.unparse(child.test) in checking
        )
        yield from imports(child, file, at_top and not later)


@cache
def files(root: Path) -> list[tuple[str, Import]]:
    """Every import of every source file of the rooms, with the file's path relative to the root."""
    return [
        (name, found)
        for room in MAY_IMPORT
        for path in sorted((root / room).rglob("*.py"))
        for name in [path.relative_to(root).as_posix()]
        for found in imports(ast.parse(path.read_text()), name)
    ]


def matching(root: Path, patterns: tuple[str, ...]) -> set[str]:
    return {
        path.relative_to(root).as_posix() for pattern in patterns for path in root.glob(pattern)
    }


def wrong_way(file: str, found: Import) -> str | None:
    """Why a file's room may not import this, wherever in the file it stands, or None."""
    room = MAY_IMPORT[file.split("/")[0]]
    if found.library == "tftune" and found.room not in room:
        return f"and its room may import {', '.join(sorted(room))}"
    for package, users in RESERVED.items():
        if f"{found.module}.".startswith(package) and not file.startswith(users):
            return f"and nothing but {', '.join(users)} may"
    return None


def not_standard_library(root: Path) -> list[str]:
    """Imports at the top of a standard-library-only file that load anything else, directly or
    through a file of ours."""
    light = matching(root, STANDARD_LIBRARY_ONLY)
    heavy = {
        module_name(name)
        for name in matching(root, tuple(f"{r}/**/*.py" for r in MAY_IMPORT)) - light
    }
    return [
        f"{file}:{found.line} imports {found.module}, and may load the standard library only"
        for file, found in files(root)
        if file in light
        and found.at_top
        and (found.module in heavy or found.library not in {"tftune", *sys.stdlib_module_names})
    ]


def loads(
    root: Path, patterns: tuple[str, ...], libraries: set[str], anywhere: bool = False
) -> list[str]:
    """Imports of these libraries at the top (or anywhere) of the files that match."""
    chosen = matching(root, patterns)
    return [
        f"{file}:{found.line} imports {found.module}"
        for file, found in files(root)
        if file in chosen and found.library in libraries and (anywhere or found.at_top)
    ]


def violations(root: Path) -> list[str]:
    return [
        *(
            f"{file}:{found.line} imports {found.module}, {why}"
            for file, found in files(root)
            if (why := wrong_way(file, found))
        ),
        *not_standard_library(root),
        *loads(root, WITHOUT_TORCH, {"torch", "triton", "iris"}),
        *loads(root, CLI, LAZY_IN_CLI),
        *loads(root, ("kernels/**/*.py",), {"iris"}),
        *loads(root, KERNEL_FILES, {"iris"}, anywhere=True),
    ]


def test_the_rooms_import_one_way(root: Path) -> None:
    assert violations(root) == []


def test_the_checker_sees_every_room(root: Path) -> None:
    assert {file.split("/")[0] for file, _ in files(root)} == set(MAY_IMPORT)
    assert not [pattern for pattern in STANDARD_LIBRARY_ONLY if not list(root.glob(pattern))]


PLANTED = {
    "db/a.py": "from tftune.tuner import search",
    "db/b.py": "def f():\n    import tftune.models.train",
    "db/c.py": "from tftune import __version__",
    "kernels/a.py": "from tftune.db.trial import Trial",
    "kernels/b.py": "from ..db import trial",
    "kernels/op/variants/bsp.py": "def f():\n    import iris",
    "kernels/comm/symmetric.py": "import iris",
    "kernels/op/space.py": "import numpy",
    "kernels/core/shape.py": "import tftune.kernels.comm.symmetric",
    "kernels/core/revision.py": "from tftune.kernels.comm import symmetric",
    "models/a.py": "from tftune.tuner.search.search import search",
    "models/b.py": (
        "from importlib import import_module\nimport_module('tftune.tuner.search.search')"
    ),
    "models/selector.py": "class A:\n    import yaml",
    "models/train.py": "import torch",
    "tuner/a.py": "from tftune import models",
    "tuner/b.py": (
        "from importlib import import_module\ndef f(x):\n    import_module(f'tftune.models.{x}')"
    ),
    "tuner/search/search.py": "if True:\n    import torch",
    "tftune/cli/app.py": "import optuna",
    "tftune/ops.py": "def f():\n    from tftune.serve import selection",
    "tftune/serve/views.py": "from tftune.cli.console import note",
    "tftune/__init__.py": "from tftune.db.store import Store",
    "tftune/report/page.py": "def f():\n    from tftune.studies.taxes import figure",
    "models/c.py": "from tftune.studies import taxes",
}
SOUND = {
    "kernels/op/space.py": (
        "from tftune.kernels.core.shape import Shape\nfrom tftune.kernels.op import X"
    ),
    "kernels/comm/symmetric.py": "def f():\n    import iris",
    "kernels/core/revision.py": "from tftune.kernels import shape",
    "kernels/core/shape.py": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch"
    ),
    "models/selector.py": "def f():\n    import yaml",
    "tuner/search/search.py": "import numpy, optuna\nfrom tftune.db.store import Store",
    "tftune/cli/app.py": (
        "import typer\nfrom tftune import __version__\ndef f():\n    import optuna"
    ),
    "tftune/cli/serve_commands.py": "def f():\n    import tftune.serve.server",
    "tftune/__init__.py": (
        "from tftune.models.selector import Selection\n"
        "def f():\n    from tftune.tuner import search"
    ),
}


def plant(root: Path, file: str, text: str) -> None:
    beside = "kernels/op/__init__.py", "kernels/__init__.py", "models/__init__.py", "db/store.py"
    for path in {file, *SOUND, *beside}:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    (root / file).write_text(text)


@pytest.mark.parametrize("file", PLANTED)
def test_a_planted_violation_is_found(tmp_path: Path, file: str) -> None:
    plant(tmp_path, file, PLANTED[file])
    found = violations(tmp_path)
    assert found and all(sentence.startswith(f"{file}:") for sentence in found)


@pytest.mark.parametrize("file", SOUND)
def test_a_sound_import_passes(tmp_path: Path, file: str) -> None:
    plant(tmp_path, file, SOUND[file])
    assert violations(tmp_path) == []


IMPORT_AND_TELL = """
import sys, time
before = set(sys.modules)
start = time.perf_counter()
import tftune
milliseconds = 1000 * (time.perf_counter() - start)
import json
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(json.dumps([milliseconds, sorted(loaded)]))
"""


def test_import_tftune_loads_the_standard_library_only_and_is_quick() -> None:
    runs = [
        json.loads(subprocess.check_output([sys.executable, "-c", IMPORT_AND_TELL], text=True))
        for _ in range(5)
    ]
    assert set(runs[0][1]) - sys.stdlib_module_names == {"tftune"}
    # The fastest of five: the others share the machine with other tests.
    assert min(milliseconds for milliseconds, _ in runs) < 30
