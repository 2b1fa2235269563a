"""Findings: times that have moved on a node, kept beside the rows until somebody has closed
them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from typing import Any

from tftune.db.drift import Moved
from tftune.db.store import Store, StoreError
from tftune.db.trial import Trial

STATES = {
    "open": "nobody has looked at it",
    "acknowledged": "somebody knows; the leaf is not judged again until it is closed",
    "closed": "its cause is gone, or its times are the new normal: a new baseline begins",
}


@dataclass(frozen=True)
class Series:
    """What checks must have in common to be compared: one config of one shape, one code."""

    op: str
    shape: str
    mode: str
    target: str
    config: str
    """As sorted JSON."""
    kernel: str

    @classmethod
    def of(cls, trial: Trial) -> Series:
        config = json.dumps(trial.config.to_dict(), sort_keys=True)
        shape = str(trial.shape)
        return cls(trial.op, shape, trial.mode, trial.target, config, trial.revision)


@dataclass(frozen=True)
class Finding(Series):
    """A time that has moved, and what became of it."""

    id: str
    opened: str
    """UTC, ISO 8601: when the last of its checks was measured."""
    ratio: float
    """Times now over the baseline's."""
    low: float
    high: float
    """95 % interval of `ratio`."""
    checks: int
    """How many it took to see."""
    text: str
    """What happened, and what else has changed since the baseline."""
    state: str = "open"
    """One of STATES."""
    changed: str = ""
    """When its state last changed; "" for never."""
    note: str = ""
    """What somebody said of it."""

    @property
    def series(self) -> Series:
        return Series(**{each.name: getattr(self, each.name) for each in fields(Series)})

    @classmethod
    def new(cls, series: Series, moved: Moved, opened: str, text: str) -> Finding:
        """Its id is a digest of the leaf and the moment: the same finding twice is one."""
        name = json.dumps([*asdict(series).values(), opened]).encode()
        return cls(
            **asdict(series),
            id=sha256(name).hexdigest()[:12],
            opened=opened,
            ratio=round(moved.ratio, 4),
            low=round(moved.low, 4),
            high=round(moved.high, 4),
            checks=moved.checks,
            text=text,
        )

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id} | asdict(self) | {"config": json.loads(self.config)}


def findings(store: Store) -> list[Finding]:
    """Every finding, in the order of opening."""
    return [_read(row) for row in store.query("SELECT * FROM tft_findings ORDER BY opened, id")]


def add(store: Store, finding: Finding) -> bool:
    """Store a finding; returns whether it is new."""
    return store.insert("tft_findings", asdict(finding))


def change(store: Store, name: str, state: str, note: str, now: str) -> Finding:
    """Acknowledge or close the finding whose id begins so; returns it as it is now.

    Raises ValueError for an unknown state, where none or several ids begin so, and where it is
    closed already.
    """
    if state not in STATES:
        raise ValueError(f"{state=} is not one of {', '.join(STATES)}")
    alike = [finding for finding in findings(store) if finding.id.startswith(name)] if name else []
    if len(alike) != 1:
        ids = ", ".join(finding.id for finding in alike or findings(store)) or "none"
        raise ValueError(
            f"{len(alike)} findings have an id that begins with {name!r}; there are {ids}"
        )
    (finding,) = alike
    if finding.state == "closed":
        raise ValueError(f"finding {finding.id} was closed at {finding.changed}; it stays closed")
    changed = replace(finding, state=state, note=note or finding.note, changed=now)
    store.execute(
        "UPDATE tft_findings SET state = :state, note = :note, changed = :changed WHERE id = :id",
        {name: getattr(changed, name) for name in ("id", "state", "note", "changed")},
    )
    return changed


def _read(row: Mapping[str, Any]) -> Finding:
    try:
        return Finding(**row)
    except TypeError as error:
        raise StoreError(f"finding {row.get('id')} cannot be read: {error}") from error
