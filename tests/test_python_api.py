"""What a user of the Python names sees: one warning for each cause of a fallback, reprs that say
what a value is, and refusals that say what to pass."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from lone import lone

import tftune
from tftune.agreement import asked
from tftune.db.target import Machine
from tftune.models import chain
from tftune.models.artifact import SHIPPED
from tftune.models.selector import Selector

SHAPE = tftune.AllGatherGemm(m=64, n=3584, k=8192, world=8)
UNKNOWN = replace(SHAPE, shard="m", b_layout="nk", m=4096)
LARGER = replace(SHAPE, m=1 << 20)
HERE = Machine("h200x8", "sm_90", {"triton": "3.6.0"})


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    assert {record.name for record in caplog.records} <= {"tftune"}
    assert {record.levelno for record in caplog.records} <= {logging.WARNING}
    return [record.getMessage() for record in caplog.records]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Selector]:
    """load(machine): the artifacts of 8 H200 as that machine loads them."""

    def loaded(machine: Machine | None = None, **arguments: Any) -> Selector:
        monkeypatch.setattr("tftune.db.target.here", lambda: machine)
        monkeypatch.setattr("tftune.models.selector.Selector.warnings", lambda self: iter(()))
        path = SHIPPED / "all_gather_gemm__h200x8.json"
        return tftune.load(path, **arguments)

    return loaded


def test_a_layout_that_nobody_measured_is_one_warning(
    load: Callable[..., Selector], caplog: pytest.LogCaptureFixture
) -> None:
    for selector in (load(), load()):
        for m in (8, 64, 4096):
            selector.select(replace(UNKNOWN, m=m))
            selector.select(replace(UNKNOWN, m=m))
            assert selector.select(replace(SHAPE, m=m)).source == "measured"
    (sentence,) = told(caplog)
    assert sentence.startswith("all_gather_gemm runs BSP: dtype=fp16,shard=m,b_layout=nk,world=8 ")
    assert "was never measured for all_gather_gemm on h200x8" in sentence


def test_sizes_that_nobody_measured_are_one_warning_for_each_layout(
    load: Callable[..., Selector], caplog: pytest.LogCaptureFixture
) -> None:
    selector = load()
    for m in (1 << 20, 1 << 21):
        assert selector.select(replace(SHAPE, m=m)).source == "fallback"
    (sentence,) = told(caplog)
    assert f"runs BSP for {LARGER}, mode graph: " in sentence


def test_another_machine_is_one_warning(
    load: Callable[..., Selector], caplog: pytest.LogCaptureFixture
) -> None:
    selector = load(replace(HERE, target="h200x4"))
    for mode in ("graph", "eager"):
        assert selector.select(SHAPE, mode).config.variant == "bsp"
    (sentence,) = told(caplog)
    assert "the artifact is for h200x8, and this machine is h200x4" in sentence


def test_a_kernel_that_changed_is_one_warning(
    load: Callable[..., Selector],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = chain.installed

    def changed(op: str, variant: str) -> str:
        return "r99" if variant == "push" else before(op, variant)

    monkeypatch.setattr(chain, "installed", changed)
    selector = load(HERE)
    for mode in ("graph", "eager"):
        selector.select(SHAPE, mode)
    (sentence,) = told(caplog)
    assert "all_gather_gemm/push has changed: its revision here is r99" in sentence


def test_what_is_as_it_should_be_is_not_logged(
    load: Callable[..., Selector], caplog: pytest.LogCaptureFixture
) -> None:
    selector = load(HERE)
    sources = {selector.select(replace(SHAPE, m=m)).source for m in (64, 96)}
    assert sources == {"measured", "interpolated"}
    assert told(caplog) == []


def test_bind_takes_a_selector_or_what_to_load(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = asked("tftune.bind", Selector(), None, None, "h200x8", False)
    wanted = "a selector, or a path, url or target to load, alone"
    assert refused == f"not loaded: tftune.bind takes {wanted}"
    refused = asked("tftune.bind", "a.json", None, None, None, False)  # type: ignore[arg-type]
    assert "no selector; give what tftune.load returns" in str(refused)


def test_reprs_say_what_a_value_is() -> None:
    assert repr(SHAPE).startswith("AllGatherGemm(m=64, n=3584, k=8192, world=8, dtype='fp16'")
    selector = tftune.load(target="h200x8")
    digest = selector.artifacts["all_gather_gemm"].digest[:12]
    has = f"all_gather_gemm on h200x8 ({digest}), all_reduce "
    assert repr(selector).startswith(f"<Selector: {has}")
    assert repr(Selector(bsp_only="no")) == "<Selector: no artifact, bsp_only>"
    found = selector.select(SHAPE)
    assert repr(found).startswith("Selection(config=Config('push', block_k=")
    assert eval(repr(found.config), {"Config": tftune.Config}) == found.config
    artifact = selector.artifacts["all_gather_gemm"]
    assert repr(artifact) == f"<Artifact: all_gather_gemm on h200x8, bench node, {digest}>"
    workspace = lone(8, arch="cuda", device="cuda:0")
    assert repr(workspace).startswith("<Workspace: rank 0 of 8 on ")
    assert "generations of 4,096 bytes, 0 calls prepared>" in repr(workspace)


ASKED = ("select", "path", "leaf", "shortlist", "answerer")
asking = pytest.mark.parametrize(
    "ask", [*(getattr(Selector(), name) for name in ASKED), tftune.select_kernel]
)


@asking
@pytest.mark.parametrize("value", ["m=64", tftune.AllGatherGemm, (64, 96), {"m": 64}, 64, None])
def test_what_is_no_shape_is_told_what_to_pass(ask: Callable[..., Any], value: Any) -> None:
    with pytest.raises(TypeError, match=r"takes a shape, such as AllGatherGemm\(m=64"):
        ask(value, "graph")


@asking
@pytest.mark.parametrize("mode", ["cuda_graph", "Graph", "", None])
def test_an_unknown_mode_is_refused_everywhere(ask: Callable[..., Any], mode: Any) -> None:
    with pytest.raises(ValueError, match=r"mode=.* is not one of graph, eager"):
        ask(SHAPE, mode)
    assert tftune._default is None, "before anything is loaded"


@pytest.mark.parametrize(
    ("word", "value"),
    [("dtype", "fp8"), ("dtype", np.float32), ("shard", "n"), ("b_layout", "NK"), ("shard", None)],
)
def test_an_unknown_word_lists_the_known_ones(word: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{word}=.* is not one of "):
        replace(SHAPE, **{word: value})
