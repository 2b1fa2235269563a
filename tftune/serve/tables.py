"""The service's tables, declared once: `migrations/` makes them, and a test holds the two against
each other.

A run and a trial are stored as the JSON records of a node (`Run`, `Trial.to_dict`), with the
columns that queries need beside them. Instants are UTC in ISO 8601, as everywhere in tftune.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

from tftune.db.target import minor

METADATA = MetaData()
NUMBER = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows by itself only in a column of type INTEGER."""
WORD = 200
"""Characters of an indexed text: PostgreSQL indexes no long ones."""


def build_of(triton: str) -> str:
    """What a version of Triton is called here: its minor version, as in `3.6`; "" for none."""
    return ".".join(minor(triton))[:WORD]


def _words(names: str) -> list[Column[str]]:
    """Columns of short texts, none of which may be null."""
    return [Column(name, String(WORD), nullable=False) for name in names.split()]


RUNS = Table(
    "runs",
    METADATA,
    Column("id", String(WORD), primary_key=True),
    *_words("target bench build node started role received"),
    Column("record", Text, nullable=False),
)
"""`build`, here and below: by `build_of`."""
ROWS = Table(
    "rows",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("id", String(16), nullable=False, unique=True),
    Column("run", String(WORD), ForeignKey("runs.id"), nullable=False),
    *_words("op target bench mode stage"),
    Column("shape", String(1000), nullable=False),
    *_words("variant build node created"),
    Column("median_us", Float),  # null where the config failed
    Column("record", Text, nullable=False),
    Index("rows_by_target", "op", "target", "number"),
    Index("rows_by_shape", "op", "shape", "number"),
    Index("rows_by_run", "run"),
)
ARTIFACTS = Table(
    "artifacts",
    METADATA,
    Column("digest", String(64), primary_key=True),  # of the document, `Artifact.digest`
    Column("sha256", String(64), nullable=False),  # of `content`
    *_words("op target build bench"),
    Column("rows", Integer, nullable=False),
    Column("nodes", Text, nullable=False),  # JSON: rows of each node
    *_words("created"),
    Column("signature", Text),  # base64, Ed25519 of `content`
    Column("content", LargeBinary, nullable=False),
    Index("artifacts_by_target", "op", "target"),
    Index("artifacts_by_bytes", "sha256"),
)
PLACEMENTS = Table(
    "placements",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    *_words("op target build stage"),
    Column("digest", String(64), ForeignKey("artifacts.digest"), nullable=False),
    *_words("action by at"),
    Column("reason", Text, nullable=False),
    Index("placements_by_stage", "op", "target", "stage", "build", "number"),
)
REPORTS = Table(
    "reports",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("digest", String(64), ForeignKey("artifacts.digest"), nullable=False),
    *_words("node by at"),
    Column("record", Text, nullable=False),
    Index("reports_by_digest", "digest"),
)
JOBS = Table(
    "jobs",
    METADATA,
    Column("id", String(32), primary_key=True),
    *_words("op target bench state by created"),
    Column("beat", Float, nullable=False),  # seconds since 1970: when its worker was last seen
    Column("finished", String(WORD)),
    Column("said", Text, nullable=False),
    Column("digest", String(64)),
    Index("jobs_by_state", "state"),
)
CAPTURES = Table(
    "captures",
    METADATA,
    Column("capture", String(64), primary_key=True),
    Column("op", String(WORD), primary_key=True),
    Column("target", String(WORD), primary_key=True),
    Column("mode", String(WORD), primary_key=True),
    Column("shape", String(1000), primary_key=True),
    *_words("node"),
    Column("calls", BigInteger, nullable=False),
    Column("replays", BigInteger, nullable=False),
    Column("selections", BigInteger, nullable=False),
    *_words("at"),
    Index("captures_by_target", "op", "target"),
)
FINDINGS = Table(
    "findings",
    METADATA,
    Column("id", String(64), primary_key=True),
    *_words("op target node state opened changed by"),
    Column("record", Text, nullable=False),
    Index("findings_by_state", "state"),
)
TOKENS = Table(
    "tokens",
    METADATA,
    Column("id", String(16), primary_key=True),
    *_words("name"),
    Column("hash", String(64), nullable=False),  # SHA-256 of the secret
    *_words("scopes"),
    Column("node", String(WORD)),  # the one that it speaks for; null: any
    *_words("created"),
    Column("expires", String(WORD)),
    Column("revoked", Boolean, nullable=False),
)
