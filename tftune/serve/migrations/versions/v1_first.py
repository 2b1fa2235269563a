"""The first schema: results, artifacts, and what a fleet says."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None
WORD = 200
NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Every table and index."""
    _runs()
    _rows()
    _artifacts()
    _placements()
    _reports()
    _jobs()
    _captures()
    _findings()
    _tokens()


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.String(WORD), primary_key=True),
        sa.Column("target", sa.String(WORD), nullable=False),
        sa.Column("bench", sa.String(WORD), nullable=False),
        sa.Column("build", sa.String(WORD), nullable=False),
        sa.Column("node", sa.String(WORD), nullable=False),
        sa.Column("started", sa.String(WORD), nullable=False),
        sa.Column("role", sa.String(WORD), nullable=False),
        sa.Column("received", sa.String(WORD), nullable=False),
        sa.Column("record", sa.Text, nullable=False),
    )


def _rows() -> None:
    op.create_table(
        "rows",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("id", sa.String(16), nullable=False, unique=True),
        sa.Column("run", sa.String(WORD), sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("op", sa.String(WORD), nullable=False),
        sa.Column("target", sa.String(WORD), nullable=False),
        sa.Column("bench", sa.String(WORD), nullable=False),
        sa.Column("mode", sa.String(WORD), nullable=False),
        sa.Column("stage", sa.String(WORD), nullable=False),
        sa.Column("shape", sa.String(1000), nullable=False),
        sa.Column("variant", sa.String(WORD), nullable=False),
        sa.Column("build", sa.String(WORD), nullable=False),
        sa.Column("node", sa.String(WORD), nullable=False),
        sa.Column("created", sa.String(WORD), nullable=False),
        sa.Column("median_us", sa.Float),
        sa.Column("record", sa.Text, nullable=False),
    )
    op.create_index("rows_by_target", "rows", ["op", "target", "number"])
    op.create_index("rows_by_shape", "rows", ["op", "shape", "number"])
    op.create_index("rows_by_run", "rows", ["run"])


def _artifacts() -> None:
    op.create_table(
        "artifacts",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("op", sa.String(WORD), nullable=False),
        sa.Column("target", sa.String(WORD), nullable=False),
        sa.Column("build", sa.String(WORD), nullable=False),
        sa.Column("bench", sa.String(WORD), nullable=False),
        sa.Column("rows", sa.Integer, nullable=False),
        sa.Column("nodes", sa.Text, nullable=False),
        sa.Column("created", sa.String(WORD), nullable=False),
        sa.Column("signature", sa.Text),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_index("artifacts_by_target", "artifacts", ["op", "target"])
    op.create_index("artifacts_by_bytes", "artifacts", ["sha256"])


def _placements() -> None:
    op.create_table(
        "placements",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("op", sa.String(WORD), nullable=False),
        sa.Column("target", sa.String(WORD), nullable=False),
        sa.Column("build", sa.String(WORD), nullable=False),
        sa.Column("stage", sa.String(WORD), nullable=False),
        sa.Column("digest", sa.String(64), sa.ForeignKey("artifacts.digest"), nullable=False),
        sa.Column("action", sa.String(WORD), nullable=False),
        sa.Column("by", sa.String(WORD), nullable=False),
        sa.Column("at", sa.String(WORD), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )
    op.create_index(
        "placements_by_stage", "placements", ["op", "target", "stage", "build", "number"]
    )


def _reports() -> None:
    op.create_table(
        "reports",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("digest", sa.String(64), sa.ForeignKey("artifacts.digest"), nullable=False),
        sa.Column("node", sa.String(WORD), nullable=False),
        sa.Column("by", sa.String(WORD), nullable=False),
        sa.Column("at", sa.String(WORD), nullable=False),
        sa.Column("record", sa.Text, nullable=False),
    )
    op.create_index("reports_by_digest", "reports", ["digest"])


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("op", sa.String(WORD), nullable=False),
        sa.Column("target", sa.String(WORD), nullable=False),
        sa.Column("bench", sa.String(WORD), nullable=False),
        sa.Column("state", sa.String(WORD), nullable=False),
        sa.Column("by", sa.String(WORD), nullable=False),
        sa.Column("created", sa.String(WORD), nullable=False),
        sa.Column("beat", sa.Float, nullable=False),
        sa.Column("finished", sa.String(WORD)),
        sa.Column("said", sa.Text, nullable=False),
        sa.Column("digest", sa.String(64)),
    )
    op.create_index("jobs_by_state", "jobs", ["state"])


def _captures() -> None:
    op.create_table(
        "captures",
        sa.Column("capture", sa.String(64), primary_key=True),
        sa.Column("op", sa.String(WORD), primary_key=True),
        sa.Column("target", sa.String(WORD), primary_key=True),
        sa.Column("mode", sa.String(WORD), primary_key=True),
        sa.Column("shape", sa.String(1000), primary_key=True),
        sa.Column("node", sa.String(WORD), nullable=False),
        sa.Column("calls", sa.BigInteger, nullable=False),
        sa.Column("replays", sa.BigInteger, nullable=False),
        sa.Column("selections", sa.BigInteger, nullable=False),
        sa.Column("at", sa.String(WORD), nullable=False),
    )
    op.create_index("captures_by_target", "captures", ["op", "target"])


def _findings() -> None:
    op.create_table(
        "findings",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("op", sa.String(WORD), nullable=False),
        sa.Column("target", sa.String(WORD), nullable=False),
        sa.Column("node", sa.String(WORD), nullable=False),
        sa.Column("state", sa.String(WORD), nullable=False),
        sa.Column("opened", sa.String(WORD), nullable=False),
        sa.Column("changed", sa.String(WORD), nullable=False),
        sa.Column("by", sa.String(WORD), nullable=False),
        sa.Column("record", sa.Text, nullable=False),
    )
    op.create_index("findings_by_state", "findings", ["state"])


def _tokens() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("name", sa.String(WORD), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("scopes", sa.String(WORD), nullable=False),
        sa.Column("node", sa.String(WORD)),
        sa.Column("created", sa.String(WORD), nullable=False),
        sa.Column("expires", sa.String(WORD)),
        sa.Column("revoked", sa.Boolean, nullable=False),
    )
