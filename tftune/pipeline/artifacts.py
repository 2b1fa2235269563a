"""An artifact of each operation, of whatever was measured until now."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tftune.db.store import Store
from tftune.db.target import Target
from tftune.models.export import export, provenance
from tftune.pipeline.training_job import Source, choose, fit, newest_build, sources


def write_artifacts(
    store: Store, ops: Iterable[str], target: Target, bench: str, folder: Path
) -> list[Path]:
    """Write `OP__TARGET.json` of each operation that has rows of BSP; returns the files.

    Every measured shape is answered by its own rows, and sizes between two of them by both. Other
    layers run BSP: rows of one model say little of another's, and judging what they say takes
    minutes.
    """
    all_sources = sources(store.trials(condition=None), store.runs())
    measured = {
        source.op for source in all_sources if (source.target, source.bench) == (target.name, bench)
    }
    return [
        _written(choose(all_sources, op, target.name, bench, str(store.path)), folder)
        for op in dict.fromkeys(ops)
        if op in measured
    ]


def _written(source: Source, folder: Path) -> Path:
    fitted = fit(source, judged=False, spanning=False)
    origin = provenance(fitted.datasets, fitted.reports, newest_build(source))
    return export(fitted.modes, folder / f"{source.op}__{source.target}.json", origin)
