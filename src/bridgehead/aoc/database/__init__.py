"""The database as the far side: records, attempts and aliases in PostgreSQL, shared by all replicas."""

from pathlib import Path

from bridgehead.runtime.stores import migrations


def read_schema() -> migrations.Schema:
    """Read the tables that records are in where there is a database."""
    return migrations.read_schema("aoc", Path(__file__).parent / "migrations")
