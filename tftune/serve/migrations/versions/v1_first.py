"""The first schema: results, artifacts, and what a fleet says.

It was not released, so it is whatever `tables` declares. The first release freezes it: from then on
this file holds the tables of that day, and a change of `tables` is another migration.
"""

from __future__ import annotations

from alembic import op

from tftune.serve.tables import METADATA

revision = "1"
down_revision = None


def upgrade() -> None:
    """Every table and index."""
    METADATA.create_all(op.get_bind())
