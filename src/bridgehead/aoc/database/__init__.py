"""The database as the far side: records, attempts and aliases in PostgreSQL, shared by all replicas."""

from pathlib import Path

from bridgehead.runtime.stores import migrations


def read_schema() -> migrations.Schema:
    """Read the migrations of the records' tables."""
    return migrations.read_schema("aoc", Path(__file__).parent / "migrations")
