"""Other artifacts in a process that serves, at a step boundary: on every rank, or on none. Standard
library only at import; the agreement needs torch.distributed."""

from __future__ import annotations

from typing import Any

import tftune
from tftune.agreement import exchanged, first_difference
from tftune.loading import Paths
from tftune.models.compatibility import log_once
from tftune.models.selector import Selector

NOTHING = "nothing new"
"""What a rank states that was given no artifact."""


def swap(
    group: Any = None,
    selector: Selector | None = None,
    *,
    path: Paths | None = None,
    url: str | None = None,
    target: str | None = None,
    allow_modelled: bool = False,
) -> bool:
    """Select by another artifact from the next call on, if every rank of the group has the same
    one: collective, called by every rank between two steps. Returns whether they do; else all keep
    what they have, and the reason is logged.

    Takes `selector`, else what `load` finds for a `path`, `url` or `target`; a rank with neither
    has no new one. Compared is what `bind` compares. Load before the step: a service that is slow
    would hold up every rank. Nothing is raised on one rank alone. Raises ImportError without torch.

    A swap changes what the next calls run, of which the first of each shape prepares. Captured
    graphs keep the kernels that they hold until they are captured again. What `warm_up` confirmed
    belongs to the former selector.

    >>> import tftune, torch.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> first = tftune.bind(dist.group.WORLD, target="h200x8")
    >>> tftune.swap(dist.group.WORLD), tftune.swap(dist.group.WORLD, target="h200x4")
    (False, True)
    >>> dist.destroy_process_group()
    """

    named = selector, path, url, target, allow_modelled
    new, statements = exchanged("tftune.swap", group, "ok", named, NOTHING)
    reason = first_difference(statements)
    if reason is None and isinstance(new, Selector):
        tftune.use(new)
        return True
    if any(statement.get("artifacts") != NOTHING for statement in statements):
        log_once(f"tftune.swap: {reason}: every rank keeps what it selects by")
    return False
