"""The audit: what assembly states, what is compiled, the rows, and that the rules refuse what the
committed rows show to spill."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from audited import audited, spilled_elsewhere

from tftune.cli import audit_job as auditing
from tftune.db.audit import Audit, Resources, read_audits, write_audits
from tftune.db.target import Target
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.chips import CHIPS, MI300X
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.tuner import audit

ROOT = Path(__file__).resolve().parent.parent
OP, TARGET = operation("all_gather_gemm"), Target.parse("mi300x8")
SHAPE = AllGatherGemm(8192, 3584, 8192, 8)
NEEDS = Resources(
    vgprs=128,
    sgprs=60,
    shared_bytes=32_768,
    spilled_bytes=0,
    waves_per_simd=4,
    mfmas=64,
    remote_bytes=16,
)
ASSEMBLY = """
\tglobal_store_dword v0, v1, s[0:1]
\tglobal_store_dwordx4 v[0:1], v[2:5], off
\tglobal_store_dwordx4 v[0:1], v[6:9], off sc0 sc1
\tglobal_load_dwordx2 v[0:1], v[2:3], off
\tglobal_load_dwordx2 v[0:1], v[4:5], off
\tglobal_load_dwordx4 v[0:3], v[4:5], off
\tbuffer_store_dword v1, off, s[0:3], 0
\tv_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]
; Occupancy: 2
    .private_segment_fixed_size: 60
    .sgpr_count:     73
    .vgpr_count:     256
"""


def row(config: Config, resources: Resources | None = NEEDS, **changes: str) -> Audit:
    return replace(
        Audit(
            "all_gather_gemm", "n=3584,k=8192,world=8", config, "gfx942", "3.7.1", "abc", resources
        ),
        **changes,
    )


def test_what_assembly_states() -> None:
    expected = Resources(
        256, 73, 49_152, spilled_bytes=60, waves_per_simd=2, mfmas=1, remote_bytes=16
    )
    assert (
        audit.resources(ASSEMBLY, 49_152, "push")
        == audit.resources(ASSEMBLY, 49_152, "pull")
        == expected
    )
    with pytest.raises(ValueError, match="does not state its vgprs: is it of an AMD target"):
        audit.resources(".visible .entry push()", 0, "push")


def test_why_a_kernel_is_refused() -> None:
    assert NEEDS.why_refused(65_536) is None
    assert (
        replace(NEEDS, spilled_bytes=60).why_refused(65_536)
        == "it spills: each thread keeps 60 bytes of registers in scratch memory"
    )
    assert (
        replace(NEEDS, shared_bytes=65_537).why_refused(65_536)
        == "it needs 65537 bytes of LDS and there are 65536"
    )


def test_rows_come_back_from_their_file_sorted_and_a_cut_line_is_left_out(tmp_path: Path) -> None:
    rows = [
        row(Config("push", block_m=64)),
        row(Config("pull"), None, failure="CompilationError: no"),
    ]
    path = tmp_path / "a" / "rows.jsonl"
    assert read_audits(path) == []
    write_audits(path, rows)
    assert set(read_audits(path)) == set(rows)
    assert path.read_text() == "".join(sorted(path.read_text().splitlines(keepends=True)))
    path.write_text(path.read_text() + '{"op": "all')
    assert len(read_audits(path)) == 2
    path.write_text('{"op": 1}\n' + rows[0].to_json() + "\n")
    with pytest.raises(ValueError, match=r"line 1 of .*rows\.jsonl is no row of an audit"):
        read_audits(path)


def test_each_distinct_kernel_is_compiled_once_also_what_a_learned_rule_refuses() -> None:
    wanted = audit.worth_auditing(OP, TARGET, 2)
    sources = [
        tuple(source.key for source in OP.module("host").kernel_sources(*pair, TARGET.chip))
        for pair in wanted
    ]
    assert len(sources) == len(set(sources)) > 300
    spilling = Config("push", block_m=256, block_n=256, block_k=64, num_warps=8, num_stages=2)
    assert "would spill" in (OP.space.why_invalid(SHAPE, spilling, TARGET.chip) or "")
    assert OP.space.complete(spilling) in [OP.space.complete(config) for _, config in wanted]


def test_a_kernel_is_compiled_and_read_here() -> None:
    small = AllGatherGemm(16, 64, 512, 2)
    found = audit.compile_and_read(
        small, Config("push", block_m=16, block_n=32, rows_per_flag=16, group_m=1), TARGET, "gfx942"
    )
    assert found.resources is not None and not found.failure
    assert found.resources.mfmas > 0
    assert found.resources.remote_bytes == 16
    assert found.resources.why_refused(65_536) is None
    assert found.shape == "n=64,k=512,world=2"
    assert dict(found.config.knobs) == dict(block_m=16, block_n=32, group_m=1, rows_per_flag=16)


def test_a_command_that_was_stopped_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has a row is not compiled again."""
    pairs = [(SHAPE, Config("push", block_m=rows)) for rows in (64, 128)]
    compiled: list[Config] = []

    def compile_all(
        missing: list[tuple[AllGatherGemm, Config]], target: Target, arch: str, workers: int
    ) -> list[Audit]:
        compiled.extend(config for _, config in missing)
        return [audit.row(OP, shape, config, arch, NEEDS) for shape, config in missing]

    monkeypatch.setattr(auditing, "audit", compile_all)
    path = tmp_path / "rows.jsonl"
    for number in (1, 2):
        monkeypatch.setattr(auditing, "worth_auditing", lambda *_, number=number: pairs[:number])
        assert len(auditing.run_audit(OP, TARGET, "gfx942", 1, path, 1, ())) == number
    assert compiled == [config for _, config in pairs] and len(read_audits(path)) == 2
    with pytest.raises(
        ValueError, match="reads the AMD assembly of gfx942 or gfx950, and sm_90 is another"
    ):
        auditing.run_audit(OP, TARGET, "sm_90", 1, path, 1, ())


def test_another_compilers_rows_are_held_beside() -> None:
    mine = [
        audit.row(OP, SHAPE, Config("push", block_m=rows), "gfx942", NEEDS) for rows in (64, 128)
    ]
    theirs = [
        replace(mine[0], triton="3.6.0", resources=replace(NEEDS, vgprs=NEEDS.vgprs * 2)),
        replace(mine[1], triton="3.6.0"),
    ]
    head, *lines = auditing.compare(mine, theirs)
    assert head.endswith("beside 3.6.0: 2 kernels in both")
    assert lines[0] == "  vgprs differs in 1 by +100% to +100%, 1 of them more"
    assert lines[1:] == [f"  {field.name} is the same" for field in fields(Resources)[1:]]
    with pytest.raises(ValueError, match="no kernel compiled in both files"):
        list(auditing.compare(mine, []))


AUDITED = [
    ("all_gather_gemm", 900, 0.02),
    ("flash_decode", 400, 0.02),
    ("all_reduce", 100, 0.02),
    ("gemm_reduce_scatter", 300, 0.02),
    ("gemm_all_reduce", 200, 0.06),
]
"""Operation, its rows at least, and the share that rules may refuse needlessly."""


def refused(one: Audit) -> bool:
    """Whether a rule learned from audits refuses this config."""
    op, chip = operation(one.op), {"gfx942": MI300X, "gfx950": CHIPS["mi355x"]}[one.arch]
    learned = [rule for rule in op.space.rules if rule.learned and rule.applies(one.config.variant)]
    shape, config = _shape(one.op, one.shape), op.space.complete(one.config)
    return any(not rule.holds(shape, config, chip) for rule in learned)


@pytest.mark.parametrize(("name", "least", "most"), AUDITED)
def test_committed_rows_the_rules_refuse_what_spills_and_hardly_more(
    name: str, least: int, most: float
) -> None:
    """Every kernel compiled for gfx942 counts, whatever its source was: the tile decides."""
    rows = audited(name)
    assert len(rows) > least and not [one for one in rows if one.failure]
    wrongly = []
    for one in rows:
        assert one.resources is not None
        rejected = refused(one)
        assert rejected or one.resources.why_refused(TARGET.chip.shared_bytes) is None, one
        if rejected and not one.resources.spilled_bytes:
            wrongly.append(one)
    assert len(wrongly) <= most * len(rows), wrongly


def test_the_rules_refuse_what_spills_by_another_triton_or_on_another_chip() -> None:
    rows = spilled_elsewhere()
    assert {(one.arch, one.triton) for one in rows} == {("gfx942", "3.6.0"), ("gfx950", "3.7.1")}
    assert [one for one in rows if not refused(one)] == []


@pytest.mark.parametrize(
    ("name", "least"), [("all_gather_gemm", 150), ("flash_decode", 150), ("all_reduce", 50)]
)
def test_committed_rows_what_is_shipped_spills_nothing(name: str, least: int) -> None:
    """Every kernel of the default configs of the named sets, operands on the heap among them, and
    of what the shipped artifact answers, has a row, and fits."""
    op = operation(name)

    def kernels(shape: Any, config: Config) -> tuple[Any, ...]:
        return tuple(
            source.key for source in op.module("host").kernel_sources(shape, config, TARGET.chip)
        )

    found = {
        kernels(_shape(name, one.shape), op.space.complete(one.config)): one.resources
        for one in audited(name)
    }
    shapes = [shape for make in op.shape_sets.values() for shape in make(world=8)]
    asked = [
        (shape, config) for shape in shapes for config in op.space.defaults(shape, TARGET.chip)
    ] + auditing.shipped(op, TARGET)
    needs = [
        found[key] for key in {kernels(*pair) for pair in asked} if key
    ]  # a library's call has no kernel
    assert len(needs) > least
    assert all(one and one.why_refused(TARGET.chip.shared_bytes) is None for one in needs)


def _shape(op: str, family: str) -> Any:
    """A shape of the kernel of a row, which names what its code depends on: M is no part of it."""
    tokens = "" if op.startswith("flash") else "m=8192,"
    return operation(op).shape.parse(tokens + family)


def test_the_page_counts_the_committed_rows() -> None:
    text = (ROOT / "docs/mi300x.md").read_text()
    for name in ("all_reduce", "gemm_reduce_scatter", "gemm_all_reduce"):
        rows = audited(name)
        spilling = sum(one.resources.spilled_bytes > 0 for one in rows if one.resources)
        assert f"| `{name}` | {len(rows)} | {spilling or 'none'} |" in text
    ours, theirs = len(audited("all_gather_gemm")), len(audited("flash_decode"))
    assert f"{ours:,} kernels of all_gather_gemm and {theirs:,} of flash_decode for gfx942" in text
