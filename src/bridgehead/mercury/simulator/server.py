"""Server: the simulated API on a socket, with its journal, its keys and its faults."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import msgspec

from bridgehead.mcp.http.message import Request as HttpRequest
from bridgehead.mcp.http.message import Response
from bridgehead.mcp.http.server import Server, listen

from .catalogue import MODELS, Model
from .delivery import deliver
from .exchange import Answered, Exchange
from .faults import Fault, Faults, FaultSettings
from .journal import Journal, ReceivedRequest
from .refusals import Refusal
from .rendering import Streamed, Whole
from .service import PREFIX, Service

HOST = "127.0.0.1"
REFUSED_SECONDS = 0.2
KEEP_SECONDS = 3600.0  # only clients and faults close connections, never an idle timer
MAX_BODY_BYTES = 64 * 1024 * 1024


class Simulator:
    """A local Mercury API: answers at once, costs nothing, fails on demand."""

    def __init__(
        self,
        port: int = 0,
        *,
        faults: Faults | None = None,
        keys: Mapping[str, Fault | None] | Iterable[str] | None = None,
        chunk_delay: float = 0.0,
        models: Sequence[Model] = MODELS,
        remember: int = 10_000,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.port = port
        self.faults = faults or Faults()
        self.keys = None if keys is None else dict(keys) if isinstance(keys, Mapping) else dict.fromkeys(keys)
        """Accepted keys, each with a fault of its own or None; None instead of a map accepts any key."""
        self.chunk_delay = chunk_delay
        self.requests = Journal(remember)
        self._service = Service(models, now)
        self._now = now
        self._server: Server | None = None
        self._refusals = 0
        self._refusing: set[asyncio.Task[None]] = set()
        self._is_open = False
        # Held while a server starts or stops: one that is stopped before it has started keeps its socket.
        self._switching = asyncio.Lock()

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"http://{HOST}:{self.port}"

    @property
    def url(self) -> str:
        """Value for MERCURY_API_URL."""
        return self.origin + PREFIX

    def text_of(self, body: dict[str, Any]) -> str:
        """Return the text of the answer to a request with this body, without faults."""
        return self._service.text(body)

    # --- listening -----------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self._is_open = True
        await self._listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async with self._switching:
            self._is_open = False
        for task in self._refusing:
            task.cancel()
        await self._close()

    async def _listen(self) -> None:
        """Listen, unless it does already or connections are refused for now."""
        async with self._switching:
            if self._server is None and self._is_open and not self._refusals:
                listening = listen(HOST, self.port)
                self.port = listening.getsockname()[1]
                self._server = Server(self._handle, keep_alive_seconds=KEEP_SECONDS, shutdown_seconds=0.0)
                await self._server.start(listening)

    async def _close(self) -> None:
        """Stop listening and cut all connections."""
        async with self._switching:
            server, self._server = self._server, None
            if server is not None:
                await server.stop()

    @asynccontextmanager
    async def refusing(self) -> AsyncIterator[None]:
        """Stop listening and cut all connections; listen again when the last such context ends."""
        self._refusals += 1
        await self._close()
        try:
            yield
        finally:
            self._refusals -= 1
            await self._listen()

    @property
    def is_refusing(self) -> bool:
        """Whether a `refused` fault has closed the port for now."""
        return bool(self._refusing)

    async def _cut_everything(self, exchange: Exchange, seconds: float) -> Answered:
        """Refuse connections for a while and cut all there are, this request's among them."""

        async def refuse() -> None:
            async with self.refusing():
                await asyncio.sleep(seconds or REFUSED_SECONDS)

        # A task of its own: stopping the server cancels the task of this request.
        task = asyncio.get_running_loop().create_task(refuse())
        self._refusing.add(task)
        task.add_done_callback(self._refusing.discard)
        return await exchange.wait_to_be_cut()

    # --- serving -------------------------------------------------------------------------------------------

    async def _handle(self, http: HttpRequest) -> Answered:
        body = bytearray()
        while piece := await http.read():
            body += piece
            if len(body) > MAX_BODY_BYTES:
                return Response.json(Refusal(413).body, 413)
        return await self._answer(http, bytes(body))

    async def _answer(self, http: HttpRequest, body: bytes) -> Answered:
        pairs = list(http.header_pairs)
        request = ReceivedRequest(http.method, http.path, pairs, body, time.monotonic())
        if request.path.startswith("/_"):
            return self._control(request)
        self.requests.add(request)
        by_key = self.keys.get(request.key) if self.keys else None
        fault = request.fault = by_key or self.faults.take(request.path, request.content)
        reply: Whole | Streamed = Whole(Refusal(401).body, 401)
        if request.key and (self.keys is None or request.key in self.keys):
            try:
                reply = self._service.reply(request.method, request.path, request.content)
            except Refusal as refusal:
                reply = Whole(refusal.body, refusal.status)
        exchange = Exchange(http, request)
        if fault is None and isinstance(reply, Whole):
            return exchange.respond(reply.status, reply.body)
        if fault is not None and fault.kind == "refused":
            return await exchange.run(self._cut_everything(exchange, fault.delay))
        return await exchange.run(deliver(exchange, reply, fault, self.chunk_delay, self._now))

    # --- orders from another process -----------------------------------------------------------------------

    def _control(self, request: ReceivedRequest) -> Response:
        match request.method, request.path:
            case "POST", "/_faults":
                try:
                    self.faults.apply(msgspec.json.decode(request.content, type=FaultSettings))
                except (msgspec.DecodeError, KeyError) as error:
                    return Response.json(Refusal(400, f"These are no orders: {error}").body, 400)
                return Response.json(b"{}")
            case "GET", "/_requests":
                shown = [entry.shown() for entry in self.requests]
                return Response.json(msgspec.json.encode({"requests": shown}))
            case "DELETE", "/_requests":
                self.requests.clear()
                return Response.json(b"{}")
            case _:
                return Response.json(Refusal(404).body, 404)
