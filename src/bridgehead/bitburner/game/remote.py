"""Remote: the game's Remote API as typed methods, and its errors translated to this bridge's.

Each method is one exchange. The game's two generations word their errors differently, so none is recognized
by its exact text. Distinguishes an unknown request, which has its own JSON-RPC code, from a missing file.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from bridgehead.mcp import Turns
from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.timing import Clock

from ..errors import InvalidReply, MissingFile, RemoteFailure, UnsupportedByGame
from . import wire
from .connection import GameConnection
from .link import CallFailed, Link

log = logs.logger("bitburner.remote")

T = TypeVar("T")
_SLOW_SECONDS = 0.5
_WHOLE_SERVERS_AT_ONCE = 2
_METHOD_NOT_FOUND = -32601
_UNKNOWN = ("unknown message", "unknown method", "method not found")

SINCE = {
    "getAllServers": "2.6",
    "getSaveFile": "2.8",
    "getFileMetadata": "3.0",
    "getAllFileMetadata": "3.0",
}
METHODS = frozenset(
    {
        "pushFile",
        "getFile",
        "deleteFile",
        "getFileNames",
        "getAllFiles",
        "calculateRam",
        "getDefinitionFile",
        *SINCE,
    }
)
"""All requests that are ever sent to a game."""

_LIST_FILES = "list_files shows which files exist."
# By words that both generations use; the first hint whose words occur is taken.
_HINTS = (
    (("hostname", "server"), "list_servers tells which servers there are; names are case-sensitive."),
    (("running",), "Ask the player to stop the script first."),
    (("ram", "calculate"), "Look for a syntax error, or an import of a file that is not there."),
    (("extension",), "This game may be too old for that kind of file (.css came with 3.0)."),
)
_NO_HINT = "Check the names with list_files and list_servers; connection_status tells the game's generation."


class GameFile(Struct, frozen=True):
    """A file with its content."""

    filename: str
    content: str


class GameServer(Struct, frozen=True):
    """A server of the game."""

    hostname: str
    hasAdminRights: bool = False  # noqa: N815 - the game's own name
    purchasedByPlayer: bool = False  # noqa: N815 - the same


class Metadata(Struct, frozen=True):
    """Times of access, modification and creation, in milliseconds since 1970; newer games add the size."""

    filename: str
    atime: float
    mtime: float
    btime: float
    size: int | None = None


class Save(Struct, frozen=True):
    """The player's save file. With `binary`, each character of `save` is one byte; otherwise it is base64."""

    identifier: str
    binary: bool
    save: str


class Remote:
    """Sends requests to the connected game."""

    def __init__(self, connection: GameConnection, timeout: float, clock: Clock) -> None:
        self._connection = connection
        self._timeout = timeout
        self._clock = clock
        # All files of a server take the loop 10 to 50 ms to decode and to answer with. Many such calls of one
        # caller would be ready in the same turn, and make every other caller wait for all of them.
        self._whole_servers = Turns(_WHOLE_SERVERS_AT_ONCE)
        # The game parses a script with everything that it imports, and answers nobody meanwhile. A second
        # request would only wait in the game, where it can be neither cancelled nor overtaken.
        self._calculations = Turns(1)

    async def call(self, method: str, kind: type[T], **params: Any) -> T:
        """Make one exchange and return its result, decoded as `kind`; `Raw` leaves it undecoded."""
        link = self._connection.link or await self._connection.require_link()
        began = self._clock.monotonic()
        outcome = "answered"
        try:
            encoded = wire.encode_params(params, self._connection.halves)
            raw = await link.call(method, encoded, self._timeout)
        except CallFailed as failed:
            outcome = "refused"
            raise to_bridge_error(method, failed.failure) from None
        except BridgeError as error:
            outcome = error.code
            raise
        finally:
            seconds = self._clock.monotonic() - began
            if seconds >= _SLOW_SECONDS:
                log.info("slow exchange", method=method, outcome=outcome, ms=round(seconds * 1000, 2))
            elif log.is_enabled("debug"):
                log.debug("exchange", method=method, outcome=outcome, ms=round(seconds * 1000, 2))
        return decode_result(method, raw, kind)

    async def list_names(self, server: str) -> list[str]:
        """Return the names of the files on a server."""
        return await self.call("getFileNames", list[str], server=server)

    async def read(self, filename: str, server: str) -> str:
        """Return the content of a file."""
        return await self.call("getFile", str, filename=filename, server=server)

    async def push(self, filename: str, content: str, server: str) -> None:
        """Write a file; an existing one is overwritten."""
        await self.call("pushFile", str, filename=filename, content=content, server=server)

    async def delete(self, filename: str, server: str) -> None:
        """Delete a file."""
        await self.call("deleteFile", str, filename=filename, server=server)

    async def read_all(self, server: str) -> list[GameFile]:
        """Return all files of a server with their contents."""
        async with self.whole_server():
            return await self.call("getAllFiles", list[GameFile], server=server)

    @asynccontextmanager
    async def whole_server(self) -> AsyncIterator[None]:
        """Wait until few enough others work on all files of a server."""
        async with self._whole_servers.take():
            yield
            # One turn of the loop for the other callers before the next heavy answer is handled.
            await asyncio.sleep(0)

    async def calculate_ram(self, filename: str, server: str) -> float:
        """Return the RAM cost of a script in GB."""
        async with self._calculations.take():
            return await self.call("calculateRam", float, filename=filename, server=server)

    async def get_definitions(self) -> str:
        """Return the game's TypeScript definitions; requested once per connection."""
        link = self._connection.link or await self._connection.require_link()
        if "definitions" not in link.memory:
            link.memory["definitions"] = await self.call("getDefinitionFile", str)
        definitions: str = link.memory["definitions"]
        return definitions

    async def list_servers(self) -> list[GameServer]:
        """Return the servers of the game."""
        return await self.call("getAllServers", list[GameServer])

    async def get_save(self) -> Save:
        """Return the player's save file."""
        return await self.call("getSaveFile", Save)

    async def get_metadata(self, filename: str, server: str) -> Metadata:
        """Return the times of a file."""
        return await self.call("getFileMetadata", Metadata, filename=filename, server=server)

    async def list_metadata(self, server: str) -> list[Metadata]:
        """Return the times of all files of a server."""
        return await self.call("getAllFileMetadata", list[Metadata], server=server)

    async def detect_generation(self) -> str:
        """Return the game's generation, probed once per connection."""
        link = self._connection.link or await self._connection.require_link()
        if "generation" not in link.memory:
            link.memory["generation"] = self._connection.generation = await self._probe_generation(link)
        generation: str = link.memory["generation"]
        return generation

    # The game does not tell its version: an old one answers a newer method with an error.
    async def _probe_generation(self, link: Link) -> str:
        if await self._knows(link, "getFileMetadata", {"filename": "", "server": "home"}):
            return "3.x"
        return "2.6 or later" if await self._knows(link, "getAllServers", {}) else "2.x before 2.6"

    async def _knows(self, link: Link, method: str, params: dict[str, str]) -> bool:
        try:
            await link.call(method, wire.encode_params(params), self._timeout)
        except CallFailed as failed:
            named = to_bridge_error(method, failed.failure)
            if not isinstance(named, RemoteFailure):
                raise named from None
            return not isinstance(named, UnsupportedByGame)
        return True


def decode_result(method: str, raw: Raw, kind: type[T]) -> T:
    """Decode a result as the expected type."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except wire.UNREADABLE as problem:
        raise InvalidReply(method, str(problem)) from None


def to_bridge_error(method: str, failure: wire.Failure) -> Exception:
    """Translate an error reply: the game's own, or that of a process that shares its game."""
    ours = wire.decode_bridge_error(failure)
    if ours is not None:
        return ours
    text = failure.message.lower()
    if failure.code == _METHOD_NOT_FOUND or any(words in text for words in _UNKNOWN):
        needed = SINCE.get(method, "2.0")
        return UnsupportedByGame(
            method,
            failure.message,
            failure.code,
            next_step=f"The connected game is too old for this: it needs Bitburner {needed} or newer.",
        )
    # In the words of either generation. 3.x appends "Filename: …", and a file's own name may contain them.
    if any(words in text.partition("filename:")[0] for words in ("exist", "not found")):
        return MissingFile(method, failure.message, failure.code, next_step=_LIST_FILES)
    hint = next((hint for words, hint in _HINTS if any(word in text for word in words)), _NO_HINT)
    return RemoteFailure(method, failure.message, failure.code, next_step=hint)
