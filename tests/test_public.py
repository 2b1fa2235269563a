"""`import tftune`: free, standard library only; load, select_kernel and bind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from synthetic import exported

import tftune
from tftune.db.trial import Trial
from tftune.kernels.all_gather_gemm import paper
from tftune.models import artifact as artifacts

OP = "all_gather_gemm"
LARGE = tftune.AllGatherGemm(m=4096, n=3584, k=8192, world=8)

IMPORT = "import time; t = time.perf_counter(); import tftune; print(time.perf_counter() - t)"


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def artifact(
    make_rows: Callable[..., list[Trial]], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    path = tmp_path_factory.mktemp("artifacts") / f"{OP}__h200x8.json"
    return exported(make_rows(paper(), bench="node"), path)


def test_importing_takes_less_than_30_ms() -> None:
    assert min(float(python(IMPORT)) for _ in range(5)) < 0.030


def test_names_are_loaded_when_asked_for() -> None:
    code = (
        "import sys, tftune; before = 'tftune.models.selector' in sys.modules; "
        "tftune.Selection; print(before, 'torch' in sys.modules)"
    )
    assert python(code) == "False False"
    assert tftune.__version__[0].isdigit() and all(getattr(tftune, name) for name in tftune.__all__)
    with pytest.raises(AttributeError, match="no attribute 'selekt'; it has AllGatherGemm"):
        tftune.selekt  # noqa: B018


def test_what_is_used_answers_and_what_is_loaded_alone_does_not(artifact: Path) -> None:
    used = tftune.use(tftune.load(artifact))
    other = tftune.load(artifact)
    assert tftune.select_kernel(LARGE) is used.select(LARGE) is not other.select(LARGE)
    assert tftune.select_kernel(LARGE).config.variant == "push"
    with pytest.raises(TypeError, match=r"use takes a Selector, as tftune\.load returns"):
        tftune.use(artifact)  # type: ignore[arg-type]


def test_an_artifact_of_another_target_than_asked(artifact: Path) -> None:
    with pytest.raises(ValueError, match="is for h200x8, not for mi300x8"):
        tftune.load(artifact, target="mi300x8")


def test_shipped_artifacts_of_a_target(artifact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "SHIPPED", artifact.parent)
    assert list(tftune.load(target="h200x8").artifacts) == [OP]
    nothing = tftune.load(target="mi300x8")
    assert nothing.artifacts == {} and nothing.bsp_only is None
    assert "no artifact for all_gather_gemm; `tftune.warm_up`" in nothing.select(LARGE).reason
    with pytest.raises(ValueError, match="'nonsense' is no target that is known here"):
        tftune.load(target="nonsense")


def test_the_machine_is_asked_when_no_target_is_given(
    artifact: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tftune.db import target

    monkeypatch.setattr(artifacts, "SHIPPED", artifact.parent)
    monkeypatch.setattr(target, "detect", lambda: target.Target.parse("h200x8"))
    assert tftune.select_kernel(LARGE).config.variant == "push"


class Ranks:
    """A torch.distributed in which the other ranks state what this one does, but for some
    changes."""

    def __init__(self, *changes: dict[str, Any]) -> None:
        self.changes = changes

    def get_world_size(self, group: object) -> int:
        return 1 + len(self.changes)

    def all_gather_object(self, into: list[Any], own: dict[str, Any], group: object) -> None:
        into[:] = [
            json.loads(json.dumps(statement))
            for statement in (own, *(own | change for change in self.changes))
        ]


@pytest.fixture
def join(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def install(*changes: dict[str, Any]) -> None:
        torch = ModuleType("torch")
        torch.distributed = Ranks(*changes)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "torch", torch)
        monkeypatch.setitem(sys.modules, "torch.distributed", torch.distributed)
        monkeypatch.setattr("tftune.db.target.build", lambda: {"python": "3"})

    return install


def test_ranks_that_agree_select(artifact: Path, join: Callable[..., None]) -> None:
    selector = tftune.use(tftune.load(artifact))
    join({}, {})
    assert tftune.bind() is selector and tftune.select_kernel(LARGE).config.variant == "push"
    other = tftune.load(artifact)
    assert tftune.bind(selector=other) is other


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"artifacts": {OP: "other"}}, "rank 1 differs from rank 0 in artifacts"),
        ({"artifacts": "not loaded: no artifact"}, "rank 1 has not loaded: no artifact"),
        ({"versions": {"python": "2"}}, "rank 1 differs from rank 0 in versions"),
        ({"disabled": {f"{OP}/push": "changed"}}, "rank 1 differs from rank 0 in disabled"),
        ({"served": {}}, "rank 1 differs from rank 0 in served"),
        ({"verdict": "link 3 is slow"}, "the machine check of rank 1 says 'link 3 is slow'"),
    ],
)
def test_any_difference_means_bsp_on_every_rank_and_one_warning(
    artifact: Path, join: Callable[..., None], change: dict[str, Any], reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    tftune.use(tftune.load(artifact))
    join(change)
    caplog.clear()
    bound = tftune.bind(group=SimpleNamespace(size=lambda: 2))
    found = tftune.select_kernel(LARGE)
    assert found is bound.select(LARGE)
    assert found.config.variant == "bsp" and reason in found.reason
    assert found.reason.endswith("every rank selects BSP")
    (sentence,) = caplog.messages
    assert sentence.startswith(f"tftune.bind: {reason}")
    assert sentence.endswith("compare what `tftune doctor --json` says on the ranks")


def test_ranks_without_an_artifact_agree_on_bsp_that_may_be_confirmed(
    join: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tftune.db import target

    monkeypatch.setattr(artifacts, "SHIPPED", tmp_path)
    monkeypatch.setattr(target, "detect", lambda: target.Target.parse("h200x8"))
    join({})
    selector = tftune.bind()
    assert selector.bsp_only is None and selector.artifacts == {}
    answer = selector.select(LARGE)
    assert answer.config.variant == "bsp" and "`tftune.warm_up` measures in place" in answer.reason
    assert selector.shortlist(LARGE) == ()
    confirmed = replace(answer, source="measured")
    selector.confirm(LARGE, "graph", confirmed)
    assert tftune.select_kernel(LARGE) is confirmed


def test_a_rank_that_cannot_load_still_takes_part(
    join: Callable[..., None], tmp_path: Path
) -> None:
    join({})
    missing = tmp_path / "missing.json"
    reason = tftune.bind(path=missing).select(LARGE).reason
    assert f"rank 0 has not loaded: cannot read the artifact {missing}" in reason


def test_bind_without_torch_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)
    needs, more = r"torch\.distributed \(.*torch.*\)", "`tftune doctor` says what to install"
    with pytest.raises(ImportError, match=rf"^tftune\.bind needs {needs}; {more}$"):
        tftune.bind()
