"""Do all ranks compile the same graph now? Asked by the store of the process group, so that a rank
which never comes costs the others a deadline and no more."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

GO, LATE = b"go", b"late"
_MET = Counter[str]()
"""How often this process waited under each name."""


def everyone_comes(store: Any, name: str, ranks: int, deadline_s: float) -> bool:
    """Whether all ranks came here under this name within the deadline; the same for every rank.

    The last to come says `go`, the first to give up says `late`; the store keeps whichever was
    first. A rank that comes afterwards reads it, and does as the others did.
    """
    _MET[name] += 1
    key = f"tftune/{name}/{_MET[name]}"
    if store.add(f"{key}/came", 1) == ranks:
        store.compare_set(f"{key}/verdict", "", GO.decode())
    try:
        store.wait([f"{key}/verdict"], timedelta(seconds=deadline_s))
    except RuntimeError:  # torch's DistStoreError is one: the time is over, or the store is gone
        store.compare_set(f"{key}/verdict", "", LATE.decode())
    return bool(store.get(f"{key}/verdict") == GO)
