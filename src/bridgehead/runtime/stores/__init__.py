"""Stores: where state lives that several processes share: Redis, PostgreSQL.

Each noun keeps its own interface in its own room, with a memory, file or SQLite version as the default. What
is here is the connection, its faults and its health. A driver is an extra, and imported only where its
setting is set.
"""

__all__ = ["migrations", "postgres"]
