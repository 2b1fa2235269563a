"""What one service is run with, as a value. Limits are constants that pages and messages state."""

from __future__ import annotations

from dataclasses import dataclass, field

MB = 1_000_000


@dataclass(frozen=True)
class Limits:
    """What one request may take; a request beyond one of them is refused, and the answer says
    both numbers."""

    rows_bytes: int = 256 * MB
    """The most bytes of an upload of rows, as sent and unpacked."""
    body_bytes: int = 1 * MB
    """The most bytes of any other body."""
    line_bytes: int = 8 * MB
    """The most bytes of one row."""
    lines: int = 100_000
    """The most lines of an upload of rows, empty ones too: a small body may unpack to nothing but
    line ends."""
    headers_s: float = 10.0
    """In which a request's line and headers must arrive."""
    idle_s: float = 20.0
    """Between two parts of a body."""
    body_s: float = 30.0
    """In which a body of `body_bytes` must arrive."""
    rows_s: float = 600.0
    """In which an upload of rows must arrive."""
    uploads: int = 8
    """Uploads of rows at once."""
    connections: int = 512
    """Open connections; beyond them 503 is answered."""
    shapes: int = 4096
    """The most shapes of one request to select."""
    page: int = 1000
    """Rows of one page at most."""


@dataclass(frozen=True)
class Settings:
    """One service."""

    db: str
    """A path of an SQLite file, or postgresql://user:password@host/name."""
    anonymous_read: bool = False
    """Whether scope `read` needs no token."""
    limits: Limits = field(default_factory=Limits)
    builds: bool = True
    """Whether this process trains what is asked of `build`."""
