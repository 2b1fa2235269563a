"""tftune.ops on emulated ranks: what is selected runs, and ranks that cannot agree all run BSP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tftune.kernels import emulated
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.workspace import Workspace

SHAPE = AllGatherGemm(7, 72, 264, 2)


def exported(rows: Any, path: Path) -> Path:
    """A modelled artifact whose leaf is push, as far as the model of a made-up machine says."""
    from tftune.models.dataset import load
    from tftune.models.export import export, provenance
    from tftune.models.train import train

    dataset = load(rows, "all_gather_gemm", "h200x8", "graph", "model")
    return export({"graph": train(dataset)}, path, provenance({"graph": dataset}, {}, {}))


def called(workspace: Workspace, paths: list[Path]) -> tuple[str, str, float]:
    """This rank's variant, why, and the error of two calls in tolerances, after all ranks bound what they loaded."""
    import tftune
    from tftune.kernels.all_gather_gemm import reference
    from tftune.ops import all_gather_gemm
    from tftune.tuner.check import relative_error

    tftune.load(paths[workspace.rank], allow_modelled=True)
    tftune.bind(workspace.group)
    selection = tftune.select_kernel(SHAPE)
    a, b = reference.make_inputs(SHAPE, workspace.rank, 0)
    exact = reference.reference(SHAPE, a, b, workspace.group)
    errors = [relative_error(all_gather_gemm(a, b, workspace), exact) for _ in range(2)]
    return selection.config.variant, selection.reason, max(errors) / reference.tolerance(SHAPE)


@pytest.fixture
def artifact(make_rows: Any, tmp_path: Path) -> Path:
    shapes = tuple(AllGatherGemm(m, 72, 264, 2) for m in (1, 4, 7, 16))
    return exported(make_rows(shapes), tmp_path / "a.json")


def test_what_is_selected_runs(artifact: Path) -> None:
    for variant, reason, error in emulated.run(2, called, [artifact, artifact]):
        assert variant == "push", reason
        assert error < 1


def test_ranks_with_different_artifacts_all_run_bsp(artifact: Path, make_rows: Any, tmp_path: Path) -> None:
    other = exported(make_rows((SHAPE, AllGatherGemm(2, 72, 264, 2))), tmp_path / "other.json")
    for variant, reason, error in emulated.run(2, called, [artifact, other]):
        assert variant == "bsp"
        assert "rank 1 differs from rank 0 in artifacts" in reason
        assert error < 1


def test_operands_that_do_not_fit_are_refused() -> None:
    import torch

    from tftune.ops import all_gather_gemm

    workspace = Workspace(0, 2, "interpreter", 4, torch.device("cpu"), None, 0, 0, None, None, 4096, None)
    a, b = torch.zeros(4, 8, dtype=torch.float16), torch.zeros(24, 8, dtype=torch.float16)
    with pytest.raises(ValueError, match="the gathered a has 16 columns but b has 24 rows"):
        all_gather_gemm(a, b, workspace)
