"""Database: the host's own data in PostgreSQL: tokens (`auth.token_database`) and the audit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.stores import migrations, postgres

from .audit.stores import PostgresAudit
from .settings import HostSettings

if TYPE_CHECKING:
    from .auth.token_database import SharedTokens


def read_schema() -> migrations.Schema:
    """Read the migrations of the host's tables."""
    return migrations.read_schema("host", Path(__file__).parent / "migrations")


class HostDatabase:
    """The host's part of the database, shared by all replicas."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._database: postgres.Database | None = None
        self.audit = PostgresAudit()
        self.tokens: SharedTokens | None = None
        self.needs_tokens = False
        """Whether callers need a token; if not, the host is ready before it has read any."""
        self.metrics = Metrics()

    async def start(self) -> None:
        """Connect; if the database is down, `acquire` goes on trying in the background."""
        self._database = database = await postgres.acquire(self._url)
        database.count_in(self.metrics)
        if self.tokens is not None:
            self.tokens.follow(database)
        self.audit.database = database

    async def stop(self) -> None:
        """Close the connection."""
        if self._database is not None:
            await postgres.release(self._database)

    def describe(self) -> Mapping[str, Any]:
        """Report the state of the database, for /readyz."""
        if self._database is None:
            return {"up": False, "says": "The database has not been opened yet."}
        return {"up": self._database.is_up, "says": self._database.detail}

    @property
    def has_tokens(self) -> bool:
        """Whether callers can be identified; False until the tokens have been read from the database."""
        return self.tokens is None or self.tokens.is_known or not self.needs_tokens


def open_host_database(settings: HostSettings) -> HostDatabase | None:
    """Return the host's database, not started yet; None if none is configured."""
    if settings.database_url is None:
        return None

    return HostDatabase(settings.database_url)
