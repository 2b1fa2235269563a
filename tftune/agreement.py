"""How ranks agree on what they select by, for `tftune.bind` and `tftune.swap`: each states what it
would select by, and compares. Standard library only at import; the exchange needs torch."""

from __future__ import annotations

from typing import Any

import tftune
from tftune.loading import Paths, selector_of, why_off
from tftune.models.selector import Selector

Found = Selector | str
"""What a rank would select by, or why it has nothing."""
Named = tuple[Selector | None, Paths | None, str | None, str | None, bool]
"""Selector, path, url, target and allow_modelled, as the caller was given them."""
Statements = list[dict[str, Any]]
"""One of each rank."""


def asked(
    caller: str,
    selector: Selector | None,
    path: Paths | None,
    url: str | None,
    target: str | None,
    allow_modelled: bool,
    ranks: int | None = None,
    otherwise: Found | None = None,
) -> Found:
    """The selector that the caller was given, else what `load` finds; `otherwise`: where nothing is
    named. Never raises: a rank that failed here would leave the others waiting."""
    try:
        is_named = any(given is not None for given in (path, url, target))
        if selector is not None and is_named:
            raise ValueError(f"{caller} takes a selector, or a path, url or target to load, alone")
        if not isinstance(selector, Selector | None):
            raise TypeError(f"{selector!r:.80} is no selector; give what tftune.load returns")
        given = selector if selector is not None or is_named else otherwise
        if given is None:
            return tftune._warned(selector_of(path, target, allow_modelled, url=url, ranks=ranks))
        if isinstance(given, Selector) and (why := why_off()):
            return given.restricted(why)
        return given
    except Exception as error:  # whatever it is, the other ranks wait for this statement
        return f"not loaded: {error}"


def exchanged(
    caller: str, group: Any, verdict: str, named: Named, otherwise: Found | None
) -> tuple[Found, Statements]:
    """What this rank finds by `asked`, for a machine of as many GPUs as the group has ranks, and
    the statements of all. Collective. Raises ImportError without torch, TypeError for what is no
    group."""
    try:
        import torch.distributed as dist
    except ImportError as error:
        raise ImportError(
            f"{caller} needs torch.distributed ({error}); `tftune doctor` says what to install"
        ) from error

    from tftune.kernels.comm.workspace import check_group

    check_group(group)
    ranks = dist.get_world_size(group)
    found = asked(caller, *named, ranks, otherwise)
    statements: Statements = [{} for _ in range(ranks)]
    dist.all_gather_object(statements, _statement(found, verdict), group=group)
    return found, statements


def _statement(found: Found, verdict: str) -> dict[str, Any]:
    """What this rank would select by, or why it cannot; never raises, as `asked`."""
    from tftune.db.target import build

    if isinstance(found, str):
        return {"verdict": verdict, "artifacts": found}
    try:
        return {
            "verdict": verdict,
            "artifacts": {
                op: " ".join(one.digest[:12] for one in found.chain.of(op))
                for op in sorted(found.artifacts)
            },
            "machine": found.machine and f"{found.machine.target} ({found.machine.arch})",
            "served": {"allow_modelled": found.allow_modelled, "bsp_only": found.bsp_only},
            "disabled": found.disabled(),
            "versions": build(),
        }
    except Exception as error:  # whatever it is, the other ranks wait for this statement
        return {"verdict": verdict, "artifacts": f"not loaded: {error}"}


def first_difference(statements: Statements) -> str | None:
    """What the first rank that differs from rank 0, or has nothing, states otherwise; None where
    all state the same.

    >>> ours, theirs = ({"verdict": "ok", "artifacts": {"all_gather_gemm": d}} for d in ("a", "b"))
    >>> print(first_difference([ours, theirs])[:39])
    rank 1 differs from rank 0 in artifacts
    """
    loaded = [
        f"rank {rank} has {s['artifacts']}"
        for rank, s in enumerate(statements)
        if isinstance(s.get("artifacts"), dict)
    ]
    for rank, statement in enumerate(statements):
        if isinstance(statement.get("artifacts"), str):
            return f"rank {rank} has {'; '.join([statement['artifacts'], *loaded[:1]])}"
        if statement.get("verdict") != "ok":
            return f"the machine check of rank {rank} says {statement.get('verdict')!r}"
    first = statements[0]
    for rank, statement in enumerate(statements):
        for name in sorted(first.keys() | statement.keys()):
            if statement.get(name) != first.get(name):
                both = f"{statement.get(name)} and {first.get(name)}"
                return f"rank {rank} differs from rank 0 in {name} ({both})"
    return None
