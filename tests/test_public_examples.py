"""Every public name has an example, and it runs: doctests in test_docs.py, blocks of code here on
emulated ranks that stand in for GPUs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
from pathlib import Path
from textwrap import dedent
from typing import Any

import page_commands
import pytest
import torch
import torch.distributed as dist

import tftune
from tftune.kernels.comm import emulated
from tftune.kernels.comm.workspace import Workspace
from tftune.kernels.core.registry import OPS

NAMES = [name for name in tftune.__all__ if name != "__version__"]
OPERATIONS = [f"ops.{op}" for op in OPS]


def public(name: str) -> Any:
    found: Any = tftune
    for part in name.split("."):
        found = getattr(found, part)
    return found


def blocks(name: str) -> str:
    """The code of a docstring's literal blocks."""
    _, *found = (inspect.getdoc(public(name)) or "").split("::\n\n")
    return "\n".join(dedent(part).partition("\n\n")[0] for part in found)


def doctests(name: str) -> list[doctest.DocTest]:
    found = public(name)
    module = importlib.import_module(found.__module__)
    return [t for t in doctest.DocTestFinder().find(found, name, module=module) if t.examples]


def run_blocks(workspace: Workspace, names: list[str], folder: Path) -> None:
    """What a user's rank runs, but that a workspace is where there is no GPU."""
    os.chdir(folder)
    Workspace.create = classmethod(lambda cls, group, payload_bytes: workspace)  # type: ignore
    for name in names:
        begun = blocks("ops") if name.startswith("ops.") else ""
        code = compile(f"{begun}\n{blocks(name)}", name, "exec")
        exec(code, {"tftune": tftune, "torch": torch, "dist": dist})


@pytest.mark.parametrize("name", [*NAMES, *OPERATIONS])
def test_a_public_name_has_an_example(name: str) -> None:
    assert doctests(name) or blocks(name)
    assert "+SKIP" not in (public(name).__doc__ or "")


@pytest.mark.parametrize("names", [["Workspace"], ["compile_pass"], ["warm_up"], OPERATIONS])
def test_blocks_run_on_two_ranks(names: list[str], tmp_path: Path) -> None:
    assert [name for name in names if "assert" not in blocks(name)] == []
    emulated.run(2, run_blocks, names, tmp_path)


def run_readme(workspace: Workspace, code: str) -> tuple[int, ...]:
    """Its block as a rank runs it, with the CPU for the GPU and a group that exists."""
    Workspace.create = classmethod(lambda cls, group, payload_bytes: workspace)  # type: ignore
    torch.cuda.set_device = torch.cuda.current_device = dist.init_process_group = (  # type: ignore
        lambda *given, **named: 0
    )
    os.environ["LOCAL_RANK"] = str(workspace.rank)
    here: dict[str, Any] = {}
    exec(code.replace('device="cuda"', 'device="cpu"'), here)
    return tuple(here["y"].shape)


def test_the_block_of_the_readme_runs_on_two_ranks() -> None:
    *_, code = page_commands.python(page_commands.README)
    assert emulated.run(2, run_readme, code) == [(128, 3584), (128, 3584)]
