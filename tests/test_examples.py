"""Every example runs on emulated ranks, and its last line says what it checked."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
import torch
from synthetic import exported
from test_style import link_tree

import tftune

FOLDER = Path(__file__).parent.parent / "examples"
COMPILED = ("llama_block", "transformers_llama")
"""Too slow for every run: inductor compiles them."""
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ("ranks", *COMPILED))
LAYER = ("column_parallel", "cuda_graph")
SELECTING = ("serve_select", "ragged_batches")
"""What runs no kernel, and checks answers."""
ERROR = re.compile(r"error ([0-9.e+-]+), (?:below ([0-9.e+-]+)|equal to the bit)")


@pytest.fixture(scope="module")
def artifact(make_rows: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It answers push for the layer of the examples on two ranks."""
    shapes = tuple(tftune.AllGatherGemm(m, 96, 256, 2, "bf16", "m", "nk") for m in (8, 16, 32, 64))
    rows = make_rows(shapes, bench="node") + make_rows(shapes, mode="eager", bench="node")
    path = tmp_path_factory.mktemp("artifact") / "all_gather_gemm__h200x2.json"
    return exported(rows, path)


def told(*command: str | Path) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def lines(artifact: Path) -> dict[str, list[str]]:
    """What each example prints, and those of the layer with an artifact. Those with kernels run in
    this process, whose ranks need not import torch."""
    said = {name: told(sys.executable, FOLDER / f"{name}.py") for name in SELECTING}
    words = {name: (name, "--cpu") for name in SCRIPTS if name not in SELECTING}
    words |= {f"{name} fused": (name, "--cpu", "--artifact", str(artifact)) for name in LAYER}
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(FOLDER)
        for name, (script, *options) in words.items():
            patched.setattr(sys, "argv", [script, *options])
            with redirect_stdout(StringIO()) as printed:
                run_path(str(FOLDER / f"{script}.py"), run_name="__main__")
            said[name] = printed.getvalue().splitlines()
    return said


def test_there_are_examples_and_the_page_lists_them() -> None:
    assert len(SCRIPTS) == 6
    page = (FOLDER / "README.md").read_text()
    assert re.findall(r"^\| \[(\w+)\.py\]\(\1\.py\)", page, re.MULTILINE) == [
        *("transformers_llama", "llama_block", "column_parallel", "cuda_graph", "decode"),
        *("serve_select", "ragged_batches", "new_operation"),
    ]


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_says_what_it_checked(lines: dict[str, list[str]], name: str) -> None:
    last = lines[name][-1]
    assert "checked " in last
    if name not in SELECTING:
        found = ERROR.search(last)
        assert found is not None and 0 <= float(found[1]) <= float(found[2] or 0), last


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model, whose file has weights at any place."""
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = dict(hidden_size=64, num_attention_heads=4, num_key_value_heads=2, vocab_size=128)
    folder = tmp_path_factory.mktemp("saved")
    torch.manual_seed(0)
    config = LlamaConfig(**sizes, intermediate_size=96, num_hidden_layers=2)
    LlamaForCausalLM(config).half().save_pretrained(folder)
    return folder


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "more"), [*((name, ()) for name in COMPILED), ("transformers_llama", ("--model",))]
)
def test_the_pass_replaces_collectives_of_a_model_and_changes_no_result(
    name: str, more: tuple[str, ...], saved: Path
) -> None:
    """Each form's error is checked by the example; here, that every collective is in its table."""
    done = subprocess.run(
        [sys.executable, FOLDER / f"{name}.py", "--cpu", *more, *([saved] if more else [])],
        env=os.environ | {"TORCHINDUCTOR_COMPILE_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    *table, last = done.stdout.splitlines()
    found = re.fullmatch(r"RESULT \w+ replaced=(\d+) kept=(\d+) max_error=([\d.e-]+)", last)
    assert found is not None and 0 <= float(found[3]) < 2**-6, last
    lines = [line.split()[0] for line in table]
    assert lines.count("replaced") == int(found[1]) >= 4, done.stdout
    assert lines.count("kept") == int(found[2])


@pytest.mark.parametrize("name", LAYER)
def test_the_layer_runs_what_the_artifact_says(lines: dict[str, list[str]], name: str) -> None:
    assert ": pull (emulated, not timed) on 2 ranks" in lines[name][-1]
    assert ": push (measured) on 2 ranks" in lines[f"{name} fused"][-1]


def test_without_a_gpu_the_graph_says_so(lines: dict[str, list[str]]) -> None:
    assert lines["cuda_graph"][-1].startswith("graphs need a GPU, so this ran eagerly; checked ")


@pytest.mark.parametrize("name", SELECTING)
def test_serving_needs_the_standard_library_only(root: Path, tmp_path: Path, name: str) -> None:
    link_tree(root, tmp_path)
    command = [sys.executable, "-S", FOLDER / f"{name}.py"]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if name == "serve_select":
        assert done.stderr.count("WARNING: ") == 1 and "was never measured" in done.stderr


def test_without_ranks_an_example_says_how_to_start_it() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "LOCAL_RANK"}
    done = subprocess.run(
        [sys.executable, FOLDER / "decode.py"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "start it with torchrun --nproc-per-node GPUS, or with --cpu" in done.stderr


@pytest.mark.parametrize("target", [("cuda", 90, 32), ("hip", "gfx942", 64)])
def test_the_new_kernel_compiles(target: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    from triton.backends.compiler import GPUTarget

    monkeypatch.syspath_prepend(FOLDER)
    spec = importlib.util.spec_from_file_location("new_operation", FOLDER / "new_operation.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    compiled = module.source(64, 8, target[0]).compile(GPUTarget(*target))
    assert compiled.asm["ptx" if target[0] == "cuda" else "amdgcn"]
