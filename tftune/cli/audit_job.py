"""`tftune audit`: what the kernels of a space need of a chip, compiled without one."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from time import monotonic

from tftune.cli.console import note
from tftune.db.audit import Audit, Resources, read_audits, write_audits
from tftune.db.target import Target
from tftune.db.trial import MODES
from tftune.kernels.core.registry import Operation
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config
from tftune.tuner.audit import audit, row, worth_auditing

ARCHITECTURES = ("gfx942", "gfx950")
"""Those whose assembly has what an audit looks for: matrix instructions and accumulators of CDNA 3
and 4."""
SAVED_S = 20.0
"""Rows are written at least as often, so that a command that is stopped loses little."""


def run_audit(
    op: Operation,
    target: Target,
    arch: str,
    pool: int,
    path: Path,
    workers: int | None,
    extra: Iterable[tuple[Shape, Config]],
) -> list[Audit]:
    """Compile what has no row in the file yet, and return the rows of all that is wanted. Raises
    ValueError for an architecture whose assembly it cannot read."""
    if arch not in ARCHITECTURES:
        known = " or ".join(ARCHITECTURES)
        raise ValueError(
            f"an audit reads the AMD assembly of {known}, and {arch} is another; "
            f"take --target mi300x8, or --arch {known}"
        )
    wanted = {
        row(op, shape, config, arch, "").key: (shape, config)
        for shape, config in worth_auditing(op, target, pool, extra)
    }
    kept = {audit.key: audit for audit in read_audits(path)}
    missing = [pair for key, pair in wanted.items() if key not in kept]
    there = len(wanted) - len(missing)
    note(
        f"{len(wanted):,} distinct kernels of {op.name} for {arch}: {there:,} are in {path}, "
        f"{len(missing):,} to compile"
    )
    saved = monotonic()
    for number, one in enumerate(audit(missing, target, arch, workers or (os.cpu_count() or 1)), 1):
        kept[one.key] = one
        if number == len(missing) or monotonic() - saved > SAVED_S:
            write_audits(path, kept.values())
            note(f"{number:,} of {len(missing):,} compiled")
            saved = monotonic()
    return [kept[key] for key in wanted]


def summary(audits: Iterable[Audit], shared_bytes: int) -> Iterator[str]:
    """What was found, a sentence each."""
    audits = list(audits)
    resources = [one.resources for one in audits if one.resources]
    refused = Counter(
        "spill" if needs.spilled_bytes else "need too much LDS"
        for needs in resources
        if needs.why_refused(shared_bytes)
    )
    yield f"{len(resources):,} kernels, {len(audits) - len(resources):,} that did not compile"
    for why, count in sorted(refused.items()):
        yield f"{count:,} {why}"
    if resources:
        vgprs = max(needs.vgprs for needs in resources)
        shared = max(needs.shared_bytes for needs in resources)
        widths = Counter(needs.remote_bytes for needs in resources)
        waves = min(needs.waves_per_simd for needs in resources)
        yield (
            f"at most {vgprs} vector registers and {shared:,} bytes of LDS, "
            f"at least {waves} waves for each SIMD"
        )
        yield "remote accesses of " + ", ".join(
            f"{width} bytes ({count:,} kernels)" for width, count in widths.most_common()
        )


def compare(audits: Iterable[Audit], others: Iterable[Audit]) -> Iterator[str]:
    """What another compiler made of the same kernels, a sentence for each number; raises ValueError
    where there are none in both."""
    theirs = {one.of_any_compiler: one for one in others}
    pairs = [(one, theirs[key]) for one in audits if (key := one.of_any_compiler) in theirs]
    resources = ((mine.resources, other.resources) for mine, other in pairs)
    both = [pair for pair in resources if all(pair)]
    if not both:
        raise ValueError(
            "no kernel compiled in both files: the other one must be of the same operation, "
            "architecture and kernel sources"
        )
    names = [", ".join(sorted({one.triton for one in side})) for side in zip(*pairs, strict=True)]
    yield f"Triton {names[0]} beside {names[1]}: {len(both):,} kernels in both"
    for field in fields(Resources):
        values = [(getattr(mine, field.name), getattr(other, field.name)) for mine, other in both]
        changes = [other - mine for mine, other in values if mine != other]
        ratios = [other / mine - 1 for mine, other in values if mine != other and mine]
        spread = f" by {min(ratios):+.0%} to {max(ratios):+.0%}" if ratios else ""
        more = f"{sum(change > 0 for change in changes):,} of them more"
        moved = f"differs in {len(changes):,}{spread}, {more}" if changes else "is the same"
        yield f"  {field.name} {moved}"


def shipped(op: Operation, target: Target) -> list[tuple[Shape, Config]]:
    """What the artifact that is shipped for the target answers to the shapes of every named set;
    nothing where none is shipped."""
    from tftune.models.artifact import SHIPPED, read_artifact
    from tftune.models.selector import Selector

    path = SHIPPED / f"{op.name}__{target.name}.json"
    if not path.exists():
        return []
    selector = Selector(read_artifact(path), allow_modelled=True)
    shapes = [shape for name in op.shape_sets for shape in op.named_set(name, target.gpus)]
    return [(shape, selector.select(shape, mode).config) for shape in shapes for mode in MODES]
