"""What `tftune doctor` says of an AMD node that is not ready."""

from __future__ import annotations

from pathlib import Path

import pytest

from tftune import rocm


@pytest.fixture
def node(tmp_path: Path) -> Path:
    for folder in ("sys/module/amdgpu", "dev/shm"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "dev/kfd").touch()
    return tmp_path


def test_nothing_without_amd_gpus(tmp_path: Path) -> None:
    assert list(rocm.problems(tmp_path, hip=None)) == []


def test_a_ready_node_has_no_problem(node: Path) -> None:
    assert list(rocm.problems(node, hip="6.4.3")) == []


def test_each_problem_says_what_to_do(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rocm, "SHARED_BYTES", 1 << 60)
    (wheels, shared) = rocm.problems(node, hip=None)
    assert "no torch for ROCm" in wheels and "[cuda]" in wheels and "--ipc=host" in shared
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert "groups render and video" in next(rocm.problems(node, hip="6.4.3"))
    (node / "dev/kfd").unlink()
    assert "--device=/dev/kfd" in next(rocm.problems(node, hip="6.4.3"))
