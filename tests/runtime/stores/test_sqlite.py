"""SQLite files: what is opened is private, in WAL mode, and of a version that is known."""

import sqlite3
from pathlib import Path

import pytest

from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.stores.sqlite import (
    create_private,
    open_database,
    transaction,
)

SCHEMA = ("CREATE TABLE things (name TEXT)",)


def test_a_new_file_gets_its_tables_once(tmp_path: Path) -> None:
    path = tmp_path / "things.sqlite3"
    for _ in range(2):
        connection = open_database(path, SCHEMA, 3, what="database of things")
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        connection.close()


def test_a_file_of_a_newer_version_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "things.sqlite3"
    open_database(path, SCHEMA, 4, what="database of things").close()
    with pytest.raises(StorageError, match=r"The database of things .* newer version"):
        open_database(path, SCHEMA, 3, what="database of things")


def _insert_and_fail(connection: sqlite3.Connection) -> None:
    with transaction(connection):
        connection.execute("INSERT INTO things VALUES ('a')")
        connection.execute("INSERT INTO nothing VALUES ('a')")


def test_what_fails_in_a_transaction_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "things.sqlite3"
    create_private(path)
    connection = open_database(path, SCHEMA, 1, what="database of things")
    with pytest.raises(sqlite3.OperationalError):
        _insert_and_fail(connection)
    assert connection.execute("SELECT count(*) FROM things").fetchone() == (0,)
    with transaction(connection):
        connection.execute("INSERT INTO things VALUES ('a')")
    assert connection.execute("SELECT count(*) FROM things").fetchone() == (1,)
    connection.close()
