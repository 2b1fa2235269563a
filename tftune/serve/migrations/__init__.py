"""The database's history, run by Alembic; a released migration never changes."""
