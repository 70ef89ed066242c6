"""Relay: let other processes of the same user share the game that this one owns.

Owner's side: a guest's requests go to the game under ids of the owner's, and the replies back under the
guest's. Guest's side: the same socket is a link like any other, plugged in while the owner reports a game.
Only requests of the Remote API are passed on; changes are made by the owner itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import msgspec
from msgspec import UNSET, Raw, Struct
from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed

from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError

from .. import wire
from ..connection import GameConnection
from ..link import CallFailed
from ..remote import METHODS
from ..sockets import TIMEOUT

log = logs.logger("bitburner.relay")

STATUS = "bridgehead/status"
_IN_FLIGHT = 256
"""Requests of one guest that are served at once; further ones are not read from the socket."""
_MAX_MS = 600_000
_UNKNOWN_METHOD = b'{"code":-32601,"message":"Method not found: the relay passes only the Remote API on."}'


class GuestRequest(Struct):
    """A guest's request."""

    id: int | str
    method: str
    params: Raw = Raw(b"{}")


class Status(Struct):
    """The owner's notification about its game."""

    connected: bool
    game: str = ""


_decode = msgspec.json.Decoder(GuestRequest).decode


class Relay:
    """The owner's side."""

    def __init__(self, connection: GameConnection, timeout: float) -> None:
        self._connection = connection
        self._timeout = timeout
        self.guests: set[_Guest] = set()
        """The processes that share the game."""
        self.operations: Mapping[str, Callable[[Raw], Awaitable[bytes]]] = {}
        """Requests that this process answers itself, beside the methods of the game."""
        connection.on_change.append(self._announce_status)

    def _announce_status(self) -> None:
        for guest in self.guests:
            guest.begin(guest.tell_status())

    def broadcast(self, message: bytes) -> None:
        """Send a notification to every guest."""
        for guest in self.guests:
            guest.begin(guest.say(message))

    async def serve(self, socket: Connection, headers: Mapping[str, str]) -> None:
        """Serve one guest until it disconnects."""
        # The guest's own time limit, so that both sides give up a call at the same time.
        asked = headers.get(TIMEOUT, "")
        timeout = min(int(asked), _MAX_MS) / 1000 if asked.isdecimal() and int(asked) else self._timeout
        guest = _Guest(socket, self._connection, timeout, self.operations)
        self.guests.add(guest)
        log.info("guest came", guests=len(self.guests))
        try:
            await guest.serve()
        finally:
            self.guests.discard(guest)
            log.info("guest went", guests=len(self.guests))


class _Guest:
    """One process that shares the game."""

    def __init__(
        self,
        socket: Connection,
        connection: GameConnection,
        timeout: float,
        operations: Mapping[str, Callable[[Raw], Awaitable[bytes]]],
    ) -> None:
        self._socket = socket
        self._operations = operations
        self._connection = connection
        self._timeout = timeout
        self._room = asyncio.Semaphore(_IN_FLIGHT)
        self._work: set[asyncio.Task[None]] = set()

    def begin(self, work: asyncio._CoroutineLike[None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def serve(self) -> None:
        try:
            # The guest plugs the game in only when its owner reports one.
            await self.tell_status()
            while True:
                frame = await self._socket.recv(decode=False)
                # Backpressure: at the limit nothing more is read, so the guest's own socket fills up.
                await self._room.acquire()
                self.begin(self._answer(frame))
        except ConnectionClosed:
            return
        finally:
            for task in self._work:
                task.cancel()

    async def tell_status(self) -> None:
        status = Status(self._connection.link is not None, self._connection.game)
        await self.say(wire.encode_notification(STATUS, status))

    async def _answer(self, frame: bytes) -> None:
        try:
            asked = _decode(frame)
        except wire.UNREADABLE:
            return
        else:
            await self.say(await self._reply(asked))
        finally:
            self._room.release()

    async def _reply(self, asked: GuestRequest) -> bytes:
        # Only known methods: a guest of another version must not send anything else to the game.
        operation = self._operations.get(asked.method)
        if operation is None and asked.method not in METHODS:
            return wire.encode_error(asked.id, _UNKNOWN_METHOD)
        try:
            link = self._connection.link
            if link is None:
                raise self._connection.make_not_connected()
            if operation is not None:
                return wire.encode_result(asked.id, await operation(asked.params))
            result = await link.call(asked.method, bytes(asked.params), self._timeout)
        except CallFailed as failed:
            return wire.encode_error(asked.id, wire.reencode_failure(failed.failure))
        except BridgeError as error:
            return wire.encode_error(asked.id, wire.encode_bridge_error(error))
        except wire.UNREADABLE:
            return wire.encode_error(asked.id, _UNKNOWN_METHOD)  # a guest of another version
        return wire.encode_result(asked.id, bytes(result))

    async def say(self, message: bytes) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await self._socket.send(message, text=True)
        except TimeoutError:  # the guest does not read; its own time limit fails the call
            log.warn("guest does not read")
        except ConnectionClosed:
            return


async def join_shared_game(connection: GameConnection, socket: Connection) -> None:
    """Use the owner's game as this process's game until the socket closes."""

    def heard(message: wire.Reply) -> None:
        if message.method != STATUS or message.params is UNSET:
            for listener in connection.on_notice:
                listener(message)
            return
        try:
            status = msgspec.json.decode(message.params, type=Status)
        except wire.UNREADABLE:
            return  # an owner of another version
        if status.connected:
            connection.plug(link, status.game)
        else:
            connection.unplug(link)

    link = connection.make_link(socket, on_notice=heard)
    try:
        await link.run()
    finally:
        connection.unplug(link)
