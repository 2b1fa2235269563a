"""Access: tokens with scopes, of which the database holds hashes alone.

A token is `tft_<id>_<secret>`: 32 random bytes as the secret. Its id finds the row, the hash of
the secret is compared in constant time.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import sqlalchemy as sa

from tftune.serve.database import Database, now
from tftune.serve.refusal import Refusal
from tftune.serve.tables import TOKENS, WORD

SCOPES = {
    "read": "rows, artifacts, selections, captures and findings are read",
    "rows": "a node uploads rows, verify reports, captures and findings",
    "promote": "artifacts are built, signed, promoted and rolled back; findings are closed",
    "admin": "all of these, and tokens are listed and revoked over HTTP",
}
PREFIX = "tft"


@dataclass(frozen=True)
class Caller:
    """Who asks."""

    id: str
    name: str
    scopes: frozenset[str]
    node: str | None = None
    """The only node that it speaks for; None: any."""

    def may(self, scope: str) -> bool:
        return scope in self.scopes or "admin" in self.scopes

    def node_of(self, given: str | None) -> str:
        """The node that a request is of: what it says, else the token's. Raises Refusal where the
        token speaks for another one."""
        if self.node is not None and given not in (None, self.node):
            raise Refusal(403, f"this token speaks for node {self.node}, not for {given}")
        return given or self.node or self.name


ANYBODY = Caller("-", "anonymous", frozenset(("read",)))


def create(
    database: Database,
    name: str,
    scopes: Sequence[str],
    days: float | None = None,
    node: str | None = None,
) -> str:
    """A new token; what is returned is shown once and stored nowhere. Raises ValueError for an
    unknown scope or an unusable name."""
    if other := sorted(set(scopes) - SCOPES.keys()):
        raise ValueError(f"{other[0]!r} is no scope; the scopes are {', '.join(SCOPES)}")
    if not scopes:
        raise ValueError(f"a token needs a scope; the scopes are {', '.join(SCOPES)}")
    for word in (name, *([node] if node is not None else [])):
        if not word.isprintable() or not 0 < len(word) <= WORD:
            raise ValueError(f"a name has 1 to {WORD} printable characters, not {word!r:.80}")
    if days is not None and not 0 < days <= 36500:
        raise ValueError(f"a token expires after 0 to 36500 days, not {days}")
    secret, number = secrets.token_urlsafe(32), secrets.token_hex(8)
    end = datetime.now(UTC) + timedelta(days=days) if days is not None else None
    row = {
        "id": number, "name": name, "hash": _hash(secret), "node": node, "created": now(),
        "scopes": " ".join(sorted(set(scopes))), "revoked": False,
        "expires": end and end.isoformat(timespec="milliseconds"),
    }  # fmt: skip
    with database.writing() as connection:
        connection.execute(sa.insert(TOKENS).values(row))
    return f"{PREFIX}_{number}_{secret}"


def listed(database: Database) -> list[dict[str, object]]:
    """Every token without its hash, oldest first."""
    shown = [column for column in TOKENS.c if column.name != "hash"]
    with database.reading() as connection:
        rows = connection.execute(sa.select(*shown).order_by(TOKENS.c.created)).mappings()
        return [dict(row) for row in rows]


def revoke(database: Database, number: str) -> bool:
    """Whether there was such a token; from now on it opens nothing."""
    change = sa.update(TOKENS).where(TOKENS.c.id == number).values(revoked=True)
    with database.writing() as connection:
        return connection.execute(change).rowcount == 1


def caller_of(database: Database, token: str) -> Caller:
    """Who has this token. Raises Refusal 401, whose sentence never holds it, where nobody has, it
    expired or was revoked."""
    prefix, _, rest = token.partition("_")
    number, _, secret = rest.partition("_")
    row = None
    if prefix == PREFIX and number.isascii() and number.isalnum():
        with database.reading() as connection:
            rows = connection.execute(sa.select(TOKENS).where(TOKENS.c.id == number))
            row = rows.mappings().one_or_none()
    known = row["hash"] if row else _hash("")
    if not hmac.compare_digest(_hash(secret), known) or row is None:
        raise Refusal(401, "the token is unknown; `tftune tokens create` makes one")
    if row["revoked"]:
        raise Refusal(401, f"token {number} was revoked; `tftune tokens create` makes another")
    if row["expires"] is not None and row["expires"] <= now():
        raise Refusal(401, f"token {number} expired at {row['expires']}; make another one")
    return Caller(number, row["name"], frozenset(row["scopes"].split()), row["node"])


def _hash(secret: str) -> str:
    """A secret of 32 random bytes needs no slow hash: nobody can try them all."""
    return sha256(secret.encode(errors="replace")).hexdigest()
