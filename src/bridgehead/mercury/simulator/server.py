"""Server: the simulated API on a socket, with its journal, its keys and its faults."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import msgspec

from .catalogue import MODELS, Model
from .connection import Connection, Exchange
from .delivery import deliver
from .faults import Fault, Faults, Orders
from .journal import Journal, Request
from .listener import Listener
from .refusals import Refusal, injected
from .rendering import Streamed, Whole
from .service import PREFIX, Service

HOST = "127.0.0.1"
REFUSED_SECONDS = 0.2
_JSON = b"content-type: application/json\r\n"


class Simulator:
    """A Mercury API that runs here, answers at once, costs nothing, and fails when it is told to."""

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
        """The keys that are good, and what each one gets; None means that any key will do."""
        self.chunk_delay = chunk_delay
        self.requests = Journal(remember)
        self._service = Service(models, now)
        self._now = now
        self._connections: set[Connection] = set()
        self._listener: Listener | None = None
        self._refusals = 0
        self._is_open = False

    @property
    def origin(self) -> str:
        """Where it listens."""
        return f"http://{HOST}:{self.port}"

    @property
    def url(self) -> str:
        """What belongs into MERCURY_API_URL."""
        return self.origin + PREFIX

    def text_of(self, body: dict[str, Any]) -> str:
        """Return the text that a request with this body is answered with when nothing goes wrong."""
        return self._service.text(body)

    # --- listening -----------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self._is_open = True
        self._listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        listener = self._listener
        self._close()
        if listener is not None:
            await listener.closed()

    def _listen(self) -> None:
        self._listener = Listener(HOST, self.port, lambda: Connection(self._serve, self._connections))
        self.port = self._listener.port

    def _close(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for connection in tuple(self._connections):
            connection.transport.abort()

    @asynccontextmanager
    async def refusing(self) -> AsyncIterator[None]:
        """Let nothing listen meanwhile, and cut what is connected; the last one to leave opens again."""
        self._refusals += 1
        self._close()
        try:
            yield
        finally:
            self._refusals -= 1
            if self._is_open and not self._refusals:
                self._listen()

    async def _refuse(self, exchange: Exchange, seconds: float) -> None:
        exchange.cut()
        async with self.refusing():
            await asyncio.sleep(seconds or REFUSED_SECONDS)

    # --- serving -------------------------------------------------------------------------------------------

    def _serve(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.path.startswith("/_"):
            self._control(exchange)
            return
        self.requests.add(request)
        exchange.on_change = self.requests.changed
        fault = request.fault = self._fault(request)
        reply = self._reply(request)
        if fault is None and isinstance(reply, Whole):
            exchange.answer(reply.status, reply.body)
        elif fault is not None and fault.kind == "refused":
            exchange.run(self._refuse(exchange, fault.delay))
        elif fault is not None and fault.status != 200:  # noqa: PLR2004 - the status of no fault
            exchange.run(self._fail(exchange, fault))
        else:
            exchange.run(deliver(exchange, reply, fault, self.chunk_delay))

    def _fault(self, request: Request) -> Fault | None:
        by_key = self.keys.get(request.key) if self.keys else None
        return by_key or self.faults.take(request.path, request.content)

    def _reply(self, request: Request) -> Whole | Streamed:
        try:
            self._check(request.key)
            return self._service.reply(request.method, request.path, request.content)
        except Refusal as refusal:
            return Whole(refusal.body, refusal.status)

    def _check(self, key: str) -> None:
        if not key or (self.keys is not None and key not in self.keys):
            raise Refusal(401)

    async def _fail(self, exchange: Exchange, fault: Fault) -> None:
        if fault.delay:
            await asyncio.sleep(fault.delay)
        refusal = injected(fault.status, fault.code, fault.message)
        exchange.answer(fault.status, refusal.body, _JSON + fault.headers(self._now()))

    # --- orders from another process -----------------------------------------------------------------------

    def _control(self, exchange: Exchange) -> None:
        request = exchange.request
        match request.method, request.path:
            case "POST", "/_faults":
                self._obey(exchange)
            case "GET", "/_requests":
                shown = [one.shown() for one in self.requests]
                exchange.answer(200, msgspec.json.encode({"requests": shown}))
            case "DELETE", "/_requests":
                self.requests.clear()
                exchange.answer(200, b"{}")
            case _:
                exchange.answer(404, Refusal(404).body)

    def _obey(self, exchange: Exchange) -> None:
        try:
            self.faults.obey(msgspec.json.decode(exchange.request.content, type=Orders))
        except (msgspec.DecodeError, KeyError) as error:
            exchange.answer(400, Refusal(400, f"These are no orders: {error}").body)
        else:
            exchange.answer(200, b"{}")
