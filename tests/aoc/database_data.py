"""A data directory whose records are in a database: the same tests run over both."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bridgehead.aoc.commands import main
from bridgehead.aoc.files.entries import Entry
from bridgehead.aoc.settings import AocSettings
from bridgehead.aoc.workspace import Workspace, open_workspace
from bridgehead.commands import db
from bridgehead.runtime.stores import postgres
from bridgehead.runtime.stores.postgres import Database
from tests.aoc.data import Data
from tests.support.proxy import Proxy, proxied


class DatabaseData(Data):
    """Puzzles in a folder, records, attempts and aliases in a database."""

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder)
        self.url = url
        db.main(["migrate"], self.environment())

    def environment(self, **more: str) -> dict[str, str]:
        return super().environment(**{"BRIDGEHEAD_DATABASE_URL": self.url, **more})

    def put_speeds(self, day: int, content: Any) -> bytes:
        """Put a day's records into the database, as they would stand in a file."""
        data = super().put_speeds(day, content)
        self.take_in()
        return data

    def take_in(self) -> None:
        """Move what is in the folder into the database, and out of the folder."""
        assert main(["import"], self.environment()) == 0
        for file in (*self.folder.glob("speeds/*"), *self.folder.glob("attempts/*")):
            file.unlink()

    def entries(self, day: int) -> list[dict[str, Any]]:
        """Read a day's records as a file would have them."""
        with postgres.opened_in_thread(self.url) as database:
            workspace = open_workspace(AocSettings(self.environment()), database=database)
            return [_as_file(entry) for entry in workspace.records.entries([day]).get(day, [])]


@asynccontextmanager
async def replica(data: DatabaseData, url: str | None = None) -> AsyncIterator[Workspace]:
    """Open an event as a replica of its own, with connections of its own."""
    database = Database(url or data.url)
    database.start()
    workspace = open_workspace(AocSettings(data.environment()), database=database)
    try:
        yield workspace
    finally:
        await workspace.close()
        await database.close()


@asynccontextmanager
async def faulty_replica(data: DatabaseData, port: int) -> AsyncIterator[tuple[Workspace, Proxy]]:
    """Open one that reaches the server at a port through a proxy, which a test can tell to fail."""
    async with (
        proxied(port) as proxy,
        replica(data, proxy.through(data.url)) as workspace,
    ):
        yield workspace, proxy


def _as_file(entry: Entry) -> dict[str, Any]:
    newer = {
        "measure": entry.measure_key,
        "grade": entry.grade_key,
        "details": entry.details_key,
        "source": entry.source_key,
        "withdrawn": entry.withdrawn,
    }
    return {
        "llm": entry.llm,
        "phase": entry.phase,
        "speedMs": entry.time,
        "timestamp": entry.timestamp,
        **{name: value for name, value in newer.items() if value is not None},
    }
