"""An operation of another package, registered by an entry point, goes the whole way: no file of
tftune names it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ENDED, IN_TURN

from tftune.kernels.core.registry import OPS

OUTSIDE = Path(__file__).parent / "outside"
ON_THE_MODEL = ("--on", "model", "--target", "h200x2")

CONTRACT = """
import sys
import torch
from tftune.kernels.comm import emulated
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config

def calls(workspace, texts, configs):
    op, worst = operation("all_sum"), 0.0
    host, formula = op.module("host"), op.module("reference")
    for seed, text in enumerate(texts):
        shape = op.shape.parse(text)
        for config in configs:
            call = host.prepare(shape, config, workspace)
            (x,) = formula.make_inputs(shape, workspace.rank, seed)
            for _ in range(3):
                out = formula.make_output(shape).fill_(float("nan"))
                call(x, out)
                right = formula.reference(shape, x, workspace.group)
                error = float((out.float() - right).norm() / right.norm())
                worst = max(worst, error / formula.tolerance(shape))
    return worst

if __name__ == "__main__":
    world = int(sys.argv[1])
    texts = [f"m=7,n=33,world={world}", f"m=1,n=1,world={world}", f"m=64,n=96,world={world}"]
    configs = [Config("bsp"), Config("push", block=1024), Config("push", block=256, num_warps=8)]
    print(max(emulated.run(world, calls, texts, configs, payload_bytes=1 << 16)))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process in which the package is installed."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "all_sum-1.dist-info").mkdir()
    (folder / "all_sum-1.dist-info/METADATA").write_text("Name: all-sum\nVersion: 1\n")
    points = "[tftune.operations]\nall_sum = all_sum\n"
    (folder / "all_sum-1.dist-info/entry_points.txt").write_text(points)
    path = os.pathsep.join([str(OUTSIDE), str(folder), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": path.rstrip(os.pathsep)}


def run(environment: dict[str, str], *command: str, ok: bool = True) -> str:
    words = [sys.executable, *command]
    done = subprocess.run(words, env=environment, text=True, capture_output=True, timeout=300)
    assert (done.returncode == 0) == ok, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.thorough
def test_it_is_searched_trained_exported_selected_and_reported(
    installed: dict[str, str], tmp_path: Path
) -> None:
    db, artifact, report = (str(tmp_path / name) for name in ("t.db", "a.json", "report"))
    lines = [
        ("search", "all_sum", "--shapes", "paper", *ON_THE_MODEL, "--db", db),
        ("train", "all_sum", "--db", db, "--target", "h200x2"),
        ("export", "all_sum", "--db", db, "--target", "h200x2", "--out", artifact),
        ("select", "all_sum", "m=100,n=512,world=2", "--artifact", artifact, "--allow-modelled"),
        ("report", "--db", db, "--out", report),
    ]
    found, _, _, selected, _ = run(installed, "-c", IN_TURN, json.dumps(lines)).split(ENDED)
    assert "all_sum on h200x2, modelled" in found and "m=200,n=512,world=2" in found
    document = json.loads(Path(artifact).read_text())
    assert document["op"] == "all_sum" and document["kernels"]["push"] == "r1"
    assert "push" in selected
    assert any("all_sum" in path.read_text() for path in Path(report).rglob("*.html"))


@pytest.mark.parametrize("world", [2, pytest.param(3, marks=pytest.mark.thorough)])
def test_its_calls_are_right_on_emulated_ranks(
    installed: dict[str, str], tmp_path: Path, world: int
) -> None:
    script = tmp_path / "contract.py"
    script.write_text(CONTRACT)
    assert 0 <= float(run(installed, str(script), str(world))) <= 1


def test_its_kernel_compiles_for_both_architectures(installed: dict[str, str]) -> None:
    code = (
        "from tftune.kernels.core.chips import H200, MI300X\n"
        "from tftune.kernels.core.registry import operation\n"
        "from tftune.kernels.core.space import Config\n"
        "from tftune.kernels.runtime.compile import gpu_target\n"
        "op = operation('all_sum')\n"
        "for chip, arch in ((H200, 'sm_90'), (MI300X, 'gfx942')):\n"
        "    shape, config = op.shape(64, 512, 8), Config('push', block=256)\n"
        "    (source,) = op.module('host').kernel_sources(shape, config, chip)\n"
        "    print(sorted(source.compile(gpu_target(arch)).asm))\n"
    )
    printed = run(installed, "-c", code)
    assert "cubin" in printed and "hsaco" in printed


def test_a_listing_names_it_and_a_name_of_our_own_cannot_be_taken(
    installed: dict[str, str],
) -> None:
    told = run(installed, "-m", "tftune", "search", "nothing", ok=False)
    listed = f"the operations are {', '.join(OPS)}, all_sum"
    assert listed in " ".join(told.split())
    code = (
        "from unittest import mock\n"
        "from importlib.metadata import EntryPoint\n"
        "from tftune.kernels.core import registry\n"
        "other = EntryPoint('flash_decode', 'all_sum', registry.GROUP)\n"
        "with mock.patch.object(registry, 'entry_points', lambda group: [other]):\n"
        "    print(registry.operation('flash_decode').package, dict(registry.packages()))\n"
    )
    assert "tftune.kernels.flash_decode {" in run(installed, "-c", code)
