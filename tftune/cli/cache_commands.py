"""The commands of the cache folder: what was confirmed in place on this machine."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tftune.cli.console import print_json, print_table
from tftune.cli.options import Json

if TYPE_CHECKING:
    from tftune.confirm.memory import Place
    from tftune.models.selection import Selection

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="As `tftune cache list` prints it, or its beginning.")
]


def list_cache(as_json: Json = False) -> None:
    """List what jobs confirmed in place on this machine: a line for each combination of GPUs,
    driver, libraries and kernels."""
    from tftune.confirm.memory import folder

    listed = [_listed(path) for path in _paths()]
    if as_json:
        return print_json(listed)
    if not listed:
        return print(f"{folder()} is empty: nothing was confirmed yet")
    head = ["name", "answers", "fused", "left out", "changed", "KiB"]
    rows = [
        [row["name"], *(str(row[name]) for name in ("answers", "fused", "left_out")),
         row["changed"][:16], f"{row['bytes'] / 1024:,.0f}"]
        for row in listed
    ]  # fmt: skip
    print_table("confirmed on this machine", head, rows)
    for row in listed:
        if row["error"]:
            print(row["error"])
    print(f"in {folder()}")
    print("fused: answers that are not BSP; left out: configs that hung, crashed or were wrong")


def show_cache(name: Name, as_json: Json = False) -> None:
    """Show what makes a combination, its answers, and the configs that it leaves out."""
    from tftune.confirm.memory import read_kept

    path = _named(name)
    if not path.exists():
        raise ValueError(
            f"{path.stem} has no answers: its job ended before the first one; `tftune cache clear "
            f"{path.stem}` forgets the configs that it left out"
        )
    identity, view = read_kept(path)
    answers = [_answered(place, answer) for place, answer in view.answers.items()]
    left_out = _left_out(view.rows)
    if as_json:
        return print_json(
            {"name": path.stem, **identity.to_dict(), "answers": answers, "left_out": left_out}
        )
    print(f"{path.stem}: {identity.target}, ranks {','.join(map(str, identity.ranks))}")
    print("  " + ", ".join(f"{key} {text}" for key, text in identity.build.items()))
    head = ["shape", "mode", "config", "source", "BSP us", "us", "gain"]
    print_table("answers", head, [_cells(row) for row in answers])
    for row in left_out:
        print(f"left out: {row['op']} {row['config']}: {row['failure']} at {row['shape']}")


def clear_cache(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="What to remove; or give --all.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Remove all that is remembered.")
    ] = False,
) -> None:
    """Forget what was confirmed, and which configs were left out: the next job measures anew."""
    from tftune.confirm.memory import clear

    if (name is None) != everything:
        raise ValueError("name one of `tftune cache list`, or give --all")
    for path in _paths() if name is None else [_named(name)]:
        clear(path.with_suffix(""))
        print(f"removed {path.stem}")


def _paths() -> list[Path]:
    from tftune.confirm.memory import folder

    kept = (path for ending in ("json", "jsonl") for path in folder().glob(f"*.{ending}"))
    return sorted({path.with_suffix(".json") for path in kept})


def _named(name: str) -> Path:
    """The one file whose name begins so; raises ValueError where there is none, or several."""
    from tftune.confirm.memory import folder

    names = [path for path in _paths() if path.stem.startswith(name)]
    for path in names:
        if path.stem == name or len(names) == 1:
            return path
    known = ", ".join(path.stem for path in names or _paths()) or "none"
    raise ValueError(f"{len(names)} names in {folder()} begin with {name!r}; known: {known}")


def _listed(path: Path) -> dict[str, Any]:
    from tftune.confirm.memory import read_kept
    from tftune.db.lock import StoreError

    answers: list[Selection] = []
    error = None
    try:
        answers = [*read_kept(path)[1].answers.values()] if path.exists() else []
    except StoreError as refused:
        error = str(refused)
    rows = path.with_suffix(".jsonl")
    files = [each for each in (path, rows) if each.exists()]
    changed = datetime.fromtimestamp(max(each.stat().st_mtime for each in files), UTC)
    return {
        "name": path.stem,
        "answers": len(answers),
        "fused": sum(answer.config.variant != "bsp" for answer in answers),
        "left_out": len(_left_out(rows)),
        "changed": changed.isoformat(timespec="seconds"),
        "bytes": sum(each.stat().st_size for each in files),
        "error": error,
    }


def _left_out(rows: Path) -> list[dict[str, str]]:
    """Configs that hung, crashed or were wrong: no job here launches them again."""
    from tftune.db.journal import failed
    from tftune.db.trial import Failure

    return [
        {"op": trial.op, "config": repr(trial.config), "failure": trial.outcome.kind,
         "shape": str(trial.shape)}
        for trial in failed(rows)
        if isinstance(trial.outcome, Failure)
    ]  # fmt: skip


def _answered(place: Place, answer: Selection) -> dict[str, Any]:
    mode, shape = place
    return {"op": shape.op, "shape": str(shape), "mode": mode, **answer.to_dict()}


def _cells(row: dict[str, Any]) -> list[str]:
    times = (row["bsp_us"], row["expected_us"])
    return [
        f"{row['op']} {row['shape']}", row["mode"], row["config"]["variant"], row["source"],
        *("-" if us is None else f"{us:,.1f}" for us in times),
        "-" if row["speedup"] is None else f"{row['speedup']:.2f}x",
    ]  # fmt: skip
