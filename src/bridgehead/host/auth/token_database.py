"""Token database: the tokens of all replicas in PostgreSQL, and how each replica learns of a change at once.

Of a secret only its hash is stored. A change notifies every host; behind a bouncer, which cannot carry that,
a host looks twice a second. While the database is gone, the last tokens stay valid, as with a file. A host
that starts meanwhile has none, and lets nobody in until it has read them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from bridgehead.runtime.errors import BridgeError, TimedOut, Unavailable
from bridgehead.runtime.stores import postgres

from .tokens import WATCH_SECONDS, Token, TokenList, Tokens, TokenStore, log, name_is_taken, no_such_token

if TYPE_CHECKING:
    Connection = postgres.Connection

T = TypeVar("T")

CHANNEL = "bridgehead_tokens"
LOOK_SECONDS = 5.0
"""How often a host looks by itself, should a notification have been lost."""
_READ = "select entry::text from host_tokens order by entry ->> 'created', name"
_ADD = """\
insert into host_tokens (id, name, entry) values ($1, $2, $3::text::jsonb)
on conflict (name) do nothing returning id"""

_decode = msgspec.json.Decoder(Token).decode


async def read_tokens(connection: Connection) -> TokenList:
    """Read all of them."""
    return TokenList(tuple(_decode(row["entry"]) for row in await connection.fetch(_READ)))


class TokenDatabase:
    """The tokens as commands change them. Blocks."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.where = postgres.parse_address(url).shown

    def read(self) -> TokenList:
        """Return what is there."""
        return self._do(lambda database: database.reader.run(read_tokens))

    def add(self, token: Token) -> None:
        """Add an entry. A name is used once."""
        entry = msgspec.json.encode(token).decode()

        async def add(connection: Connection) -> object:
            return await connection.fetchval(_ADD, token.id, token.name, entry)

        if self._do(lambda database: database.writer.run(add)) is None:
            raise name_is_taken(token.name)

    def revoke(self, name: str) -> Token:
        """Take an entry out, and return it."""

        async def revoke(connection: Connection) -> str | None:
            sql = "delete from host_tokens where name = $1 returning entry::text"
            found: str | None = await connection.fetchval(sql, name)
            return found

        found = self._do(lambda database: database.writer.run(revoke))
        if found is None:
            raise no_such_token(name, self.read().tokens)
        return _decode(found)

    def _do(self, work: Callable[[postgres.Database], Coroutine[Any, Any, T]]) -> T:
        with postgres.opened_in_thread(self._url) as database:
            return database.wait_for(work(database))


class SharedTokens(Tokens):
    """The tokens as a host holds them: read at the start, and again when the database says so."""

    def __init__(self, source: TokenStore) -> None:
        super().__init__()
        self._source = source
        self._database: postgres.Database | None = None
        self._looked = 0.0

    def read(self) -> None:
        """Read them for the first time. Blocks. A database that is down is waited for while serving."""
        try:
            self._replace(self._source.read())
        except (Unavailable, TimedOut) as failure:
            self.problem = str(failure)
            log.error("the tokens cannot be read yet, so nobody is let in", problem=self.problem)

    def refresh(self) -> None:
        """Look again with the next turn of the watch."""
        self.look_soon()

    def follow(self, database: postgres.Database) -> None:
        """Hear of changes from now on."""
        self._database = database
        if not database.address.is_pooled:
            database.reader.when_opened(self._listen)

    async def _listen(self, connection: Connection) -> None:
        await connection.add_listener(CHANNEL, lambda *_: self.look_soon())
        self.look_soon()  # what happened while there was no connection

    async def wait(self) -> None:
        """Wait until something may have changed, and read it."""
        database = self._database
        is_told = await self._wait_until_due(WATCH_SECONDS)
        now = asyncio.get_running_loop().time()
        is_due = now - self._looked >= (LOOK_SECONDS if database and not database.address.is_pooled else 0.0)
        if database is None or not (is_due or is_told):
            return
        self._looked = now
        try:
            found = await database.reader.run(read_tokens)
        except BridgeError as failure:
            if str(failure) != self.problem:
                stays = "the last ones stay valid" if self.is_known else "nobody is let in"
                log.error(f"the tokens cannot be read; {stays}", problem=str(failure))
            self.problem = str(failure)
            await asyncio.sleep(WATCH_SECONDS)
            return
        if self._replace(found):
            log.info("the tokens were read again", tokens=len(self))
