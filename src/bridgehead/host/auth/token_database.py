"""Token database: the tokens of all replicas in PostgreSQL. Each replica learns of a change at once.

Only the hash of a secret is stored. A trigger on the table notifies every host (LISTEN/NOTIFY); behind a
connection pooler, which does not pass notifications on, a host polls twice a second. While the database is
down the last tokens stay valid, as with a file. A host that starts meanwhile has none and rejects all callers
until it has read them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from bridgehead.runtime.errors import BridgeError, StorageError, TimedOut, Unavailable
from bridgehead.runtime.stores import postgres

from .tokens import WATCH_SECONDS, Token, TokenList, Tokens, TokenStore, log, name_is_taken, no_such_token

if TYPE_CHECKING:
    Connection = postgres.Connection

T = TypeVar("T")

CHANNEL = "bridgehead_tokens"
LOOK_SECONDS = 5.0
"""How often a host reads the tokens without a notification, in case one was lost."""
_READ = "select entry::text from host_tokens order by entry ->> 'created', name"
# The unique name decides between two commands that add it at the same time: one of them gets no id back.
_ADD = """\
insert into host_tokens (id, name, entry) values ($1, $2, $3::text::jsonb)
on conflict (name) do nothing returning id"""

# The later use wins, in any order of saving. Rows are locked in the order of the ids: otherwise two hosts
# that save the same tokens could deadlock. The join leaves out tokens that were revoked meanwhile.
_MERGE_USES = """\
insert into host_token_uses (id, used)
select id, to_timestamp(at) from unnest($1::text[], $2::float8[]) as new (id, at) join host_tokens using (id)
order by id
on conflict (id) do update set used = greatest(host_token_uses.used, excluded.used)"""

_decoder = msgspec.json.Decoder(Token)


def _decode(entry: str) -> Token:
    """Decode a stored token. Raises StorageError."""
    try:
        return _decoder.decode(entry)
    except msgspec.MsgspecError as failure:
        raise StorageError(
            f"A token in the database cannot be read: {failure}.",
            next_step="Correct its entry in the table host_tokens, or upgrade this host.",
        ) from failure


async def read_tokens(connection: Connection) -> TokenList:
    """Read all tokens, oldest first."""
    return TokenList(tuple(_decode(row["entry"]) for row in await connection.fetch(_READ)))


async def merge_uses(connection: Connection, uses: Mapping[str, float]) -> dict[str, float]:
    """Store later uses by token id; return the last use of every token that has one."""
    if uses:
        await connection.execute(_MERGE_USES, list(uses), list(uses.values()))
    rows = await connection.fetch("select id, extract(epoch from used)::float8 as at from host_token_uses")
    return {row["id"]: row["at"] for row in rows}


class TokenDatabase:
    """The token store for short-lived commands. Blocks."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.where = postgres.parse_address(url).shown

    def read(self) -> TokenList:
        """Return all tokens."""
        return self._do(lambda database: database.reader.run(read_tokens))

    def add(self, token: Token) -> None:
        """Add a token. Raises InvalidArgument if its name is taken."""
        entry = msgspec.json.encode(token).decode()

        async def add(connection: Connection) -> object:
            return await connection.fetchval(_ADD, token.id, token.name, entry)

        if self._do(lambda database: database.writer.run(add)) is None:
            raise name_is_taken(token.name)

    def change(self, name: str, change: Callable[[Token], Token]) -> Token:
        """Replace a token by what a function makes of it, and return that. Raises NotFound."""

        async def update(connection: Connection) -> Token | None:
            async with connection.transaction():
                # The lock makes a second command wait, so that it changes what the first one wrote.
                sql = "select entry::text from host_tokens where name = $1 for update"
                entry = await connection.fetchval(sql, name)
                if entry is None:
                    return None
                changed = change(_decode(entry))
                sql = "update host_tokens set entry = $2::text::jsonb where name = $1"
                await connection.execute(sql, name, msgspec.json.encode(changed).decode())
                return changed

        changed = self._do(lambda database: database.writer.run(update))
        if changed is None:
            raise no_such_token(name, self.read().tokens)
        return changed

    def revoke(self, name: str) -> Token:
        """Delete a token and return it. Raises NotFound."""

        async def revoke(connection: Connection) -> str | None:
            # One statement, so that of two commands that revoke a token exactly one gets it.
            sql = "delete from host_tokens where name = $1 returning entry::text"
            deleted: str | None = await connection.fetchval(sql, name)
            return deleted

        entry = self._do(lambda database: database.writer.run(revoke))
        if entry is None:
            raise no_such_token(name, self.read().tokens)
        return _decode(entry)

    def merge_uses(self, uses: Mapping[str, float]) -> dict[str, float]:
        """Store later uses by token id; return the last use of every token that has one."""
        return self._do(lambda database: database.writer.run(partial(merge_uses, uses=uses)))

    def _do(self, work: Callable[[postgres.Database], Coroutine[Any, Any, T]]) -> T:
        with postgres.opened_in_thread(self._url) as database:
            return database.wait_for(work(database))


class SharedTokens(Tokens):
    """A host's copy of the tokens: read at the start, and again when the database announces a change."""

    def __init__(self, source: TokenStore) -> None:
        super().__init__(source)
        self._database: postgres.Database | None = None
        self._looked = 0.0

    def read(self) -> None:
        """Read the tokens for the first time. Blocks. If the database is down, `wait` reads them later."""
        try:
            self._replace(self._store.read())
        except (Unavailable, TimedOut) as failure:
            self.problem = str(failure)
            log.error("the tokens cannot be read yet, so all callers are rejected", problem=self.problem)

    def refresh(self) -> None:
        """Make `wait` read the tokens now; a request cannot wait for the database here."""
        self.look_soon()

    def follow(self, database: postgres.Database) -> None:
        """Read the tokens from this database whenever it announces a change."""
        self._database = database
        if not database.address.is_pooled:
            # On every new connection: LISTEN ends with the connection that it was sent on.
            database.reader.when_opened(self._listen)

    async def _listen(self, connection: Connection) -> None:
        await connection.add_listener(CHANNEL, lambda *_: self.look_soon())
        self.look_soon()  # notices are lost while there is no connection

    async def _merge_uses(self, uses: Mapping[str, float]) -> dict[str, float]:
        if self._database is None:  # not connected yet: the next round saves them
            raise Unavailable("The database has not been opened yet.")
        return await self._database.writer.run(partial(merge_uses, uses=uses))

    async def wait(self) -> None:
        """Wait until the tokens may have changed, then read them."""
        database = self._database
        is_notified = await self._wait_until_due(WATCH_SECONDS)
        now = asyncio.get_running_loop().time()
        # Behind a pooler nothing is announced, so every turn (half a second) reads.
        is_due = now - self._looked >= (LOOK_SECONDS if database and not database.address.is_pooled else 0.0)
        if database is None or not (is_due or is_notified):
            return
        self._looked = now
        try:
            tokens = await database.reader.run(read_tokens)
        except BridgeError as failure:
            if str(failure) != self.problem:  # logged once for each outage, not twice a second
                stays = "the last ones stay valid" if self.is_known else "nobody is let in"
                log.error(f"the tokens cannot be read; {stays}", problem=str(failure))
            self.problem = str(failure)
            await asyncio.sleep(WATCH_SECONDS)
            return
        if self._replace(tokens):
            log.info("the tokens were read again", tokens=len(self))
