"""A measured time is worth something for the code that it was measured on: what runs is pinned by
revision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from fingerprint import CALLS, CHIPS, differences, first_calls, host_trace, samples
from mutant import Change, mutant
from stored import trial

from tftune.kernels.core import revision
from tftune.kernels.core.registry import OPS, operation
from tftune.kernels.runtime.compile import KernelSource

VARIANTS = [(op, variant) for op in OPS for variant in operation(op).space.variants]
PUSH = next(
    one for one in samples("all_gather_gemm")["push"][1] if one.config["loads"] == "pointer"
)

_SIGNAL = (
    "            signal("
    "peer(flag(control, rank, chunk), control_bases, rank, target), epoch, ARCH)\n"
)
FLAG_FIRST: tuple[Change, ...] = (
    ("all_gather_gemm.push", f"{_SIGNAL}    multiply_all", "    multiply_all"),
    ("all_gather_gemm.push", "            copy_shard(", f"{_SIGNAL}            copy_shard("),
)


def changed(op: str, variant: str, calls: slice) -> list[str]:
    pinned, found = samples(op)[variant]
    return [text for sample in found[calls] for text in differences(variant, pinned, sample)]


@pytest.mark.parametrize(("op", "variant"), VARIANTS)
def test_what_runs_is_what_was_pinned(op: str, variant: str) -> None:
    assert changed(op, variant, slice(0, 2)) == []


@pytest.mark.thorough
@pytest.mark.parametrize(("op", "variant"), VARIANTS)
def test_all_pinned_calls_are_as_they_were(op: str, variant: str) -> None:
    assert changed(op, variant, slice(2, None)) == []


@pytest.mark.parametrize("op", OPS)
def test_every_variant_declares_its_revision_and_is_pinned(op: str) -> None:
    space = operation(op).space
    assert space.revisions.keys() == space.variants.keys() == samples(op).keys()
    for variant, (pinned, found) in samples(op).items():
        assert revision.installed(op, variant) == f"r{pinned}" and len(found) >= CALLS
        for sample in found:
            assert sample.config == space.complete(sample.config)
            here = [
                a for a in CHIPS if not space.why_invalid(sample.shape, sample.config, CHIPS[a])
            ]
            assert here
            for arch in here[:1]:
                assert {"host", "3.6.0", "3.7.1"} <= sample.digests[arch].keys(), (
                    "rows are of 3.6, tests of 3.7.1"
                )


@pytest.mark.parametrize(("op", "variant"), VARIANTS)
def test_a_variant_without_pins_gets_possible_calls(op: str, variant: str) -> None:
    space, found = operation(op).space, first_calls(op, variant)
    assert len(found) == CALLS
    for sample in found:
        assert sample.config.variant == variant and sample.config == space.complete(sample.config)
        possible = (space.why_invalid(sample.shape, sample.config, c) for c in CHIPS.values())
        assert None in possible


def test_an_unknown_variant_has_no_revision() -> None:
    with pytest.raises(
        ValueError, match="all_gather_gemm has no variant 'fetch'; it has bsp, pull"
    ):
        revision.installed("all_gather_gemm", "fetch")


def test_a_raised_revision_leaves_older_rows_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    space = operation("all_gather_gemm").space
    raised = replace(
        operation("all_gather_gemm"), space=replace(space, revisions=space.revisions | {"push": 2})
    )
    monkeypatch.setattr(revision, "operation", lambda op: raised)
    revision.installed.cache_clear()
    try:
        assert (
            trial(revision="r1").revision != revision.installed("all_gather_gemm", "push") == "r2"
        )
    finally:
        revision.installed.cache_clear()


class TestGuard:
    """What fails the guard, and what does not, on one call of push."""

    def sentence(self, monkeypatch: pytest.MonkeyPatch, kernel: Any) -> str:
        """What the guard says of push with another kernel; "" where nothing runs otherwise."""
        module = import_module("tftune.kernels.all_gather_gemm.variants.push")
        monkeypatch.setattr(module, "push", kernel)
        return " ".join(differences("push", 1, PUSH))

    @pytest.mark.parametrize(
        "refactored",
        [
            lambda text: text.replace("epoch", "call_number"),
            lambda text: "\n\n\n" + text.replace("\n    ", "\n    # another comment\n    ", 1),
        ],
        ids=["renamed", "commented"],
    )
    def test_a_pure_refactoring_passes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refactored: Callable[[str], str]
    ) -> None:
        source = Path(
            str(import_module("tftune.kernels.all_gather_gemm.variants.push").__file__)
        ).read_text()
        assert refactored(source) != source
        (tmp_path / "other_push.py").write_text(refactored(source))
        monkeypatch.syspath_prepend(tmp_path)
        assert self.sentence(monkeypatch, import_module("other_push").push) == ""

    def test_a_changed_order_of_stores_and_flags_fails(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kernel = mutant(tmp_path, "push", FLAG_FIRST)
        sentence = self.sentence(monkeypatch, kernel)
        assert "the code that Triton" in sentence
        assert "has changed" in sentence
        assert "raise it in kernels/all_gather_gemm/space.py" in sentence

    def test_a_changed_compile_option_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        host = operation("all_gather_gemm").module("host")
        monkeypatch.setattr(
            host,
            "KernelSource",
            lambda *given: KernelSource(*given[:4], given[4] | {"num_stages": 1}),
        )
        assert len(list(differences("push", 1, PUSH))) == 4, "device and host, both architectures"

    def test_a_changed_grid_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        host = operation("all_gather_gemm").module("host")
        programs = host.programs
        monkeypatch.setattr(host, "programs", lambda *given: programs(*given) - 1)
        assert [text.partition(" for ")[0] for text in differences("push", 1, PUSH)] == [
            "what the host does"
        ] * 2

    def test_a_changed_order_of_library_calls_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module = import_module("tftune.kernels.all_gather_gemm.variants.bsp_chunked")
        shape, chunked = next(
            (one.shape, one.config)
            for one in samples("all_gather_gemm")["bsp_chunked"][1]
            if one.shape.world > 1
        )
        before = host_trace(shape, chunked, "sm_90")

        class Late(module.Exchange):  # type: ignore[name-defined,misc]
            def send(self, parity: int, shard: int) -> None:
                self.late = parity, shard

            def join(self) -> None:
                super().send(*self.late)
                super().join()

        monkeypatch.setattr(module, "Exchange", Late)
        after = host_trace(shape, chunked, "sm_90")
        assert sorted(after) == sorted(before) and after != before
