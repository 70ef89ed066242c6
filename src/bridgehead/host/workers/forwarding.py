"""Forwarding: how the workers of one host reach each other, on loopback and with a secret of their own.

A session lives in the worker that opened it; whoever else gets a request of it forwards it. The metrics of
all workers are gathered by the one that is asked. Nobody else knows the secret, which the parent makes.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from bridgehead.mcp.http.message import ClientGone, Handled, Handler, Request, Response, ResponseStream
from bridgehead.mcp.http.server.connections import OnReject, log_rejection
from bridgehead.runtime.events import Event
from bridgehead.runtime.http import BodyTooLarge, ConnectFailed, ConnectionBroken, Pool
from bridgehead.runtime.http import Response as PeerResponse

SECRET = b"x-bridgehead-sibling"
PEER = b"x-bridgehead-peer"
"""Where a replica on another machine signs what it forwards."""
GONE = b"gone"
"""What stands there in the answer of a process that has the address of the one that was meant."""
CLIENT = b"x-bridgehead-client"
HOST = b"x-bridgehead-host"
OWN_METRICS = "/own-metrics"
OWN_EVENTS = "/own-events"
OWN_STATE = "/own-state"
END_SESSION = "/end-session"
FOLLOW_SECONDS = 1.0
"""How long until a worker whose events broke off is asked for them again."""
_HOP_BY_HOP = {b"connection", b"keep-alive", b"transfer-encoding", b"expect", b"upgrade", b"te"}
_NOT_FORWARDED = frozenset({*_HOP_BY_HOP, b"host", b"content-length", SECRET, PEER, CLIENT, HOST})
_NOT_RETURNED = frozenset({b"connection", b"transfer-encoding", b"date"})
_LONGEST_PREFIX = 4
"""Characters in which the number of a worker and its mark must be found."""
CONNECT_SECONDS = 2.0
GATHER_SECONDS = 2.0
_MOST_METRICS_BYTES = 16 * 1024 * 1024


class WorkerGone(Exception):
    """A worker that cannot be reached."""


class Workers:
    """All workers, as one of them sees them."""

    def __init__(self, index: int, ports: tuple[int, ...], secret: bytes, host: str = "127.0.0.1") -> None:
        self.index = index
        self._host = host
        self.ports = ports
        self._secret = secret
        self._pools: dict[int, Pool] = {}

    @property
    def others(self) -> list[int]:
        """The numbers of all other workers."""
        return [number for number in range(len(self.ports)) if number != self.index]

    @property
    def session_prefix(self) -> str:
        """What the ids of our sessions begin with, so that every worker knows whose they are."""
        return f"{self.index}~"

    def _pool(self, number: int) -> Pool:
        if number not in self._pools:
            url = f"http://{self._host}:{self.ports[number]}"
            self._pools[number] = Pool(url, connect_seconds=CONNECT_SECONDS)
        return self._pools[number]

    def owner_of(self, session: bytes) -> int | None:
        """Return the worker that has a session; None where that is us, or nobody."""
        number, mark, _ = session[:_LONGEST_PREFIX].partition(b"~")
        if not mark or not number.isdigit() or int(number) >= len(self.ports):
            return None
        return None if int(number) == self.index else int(number)

    async def forward(self, owner: int, request: Request, body: bytes) -> ResponseStream:
        """Let another worker answer a request, piece by piece, until it or the client ends."""
        return await forward_request(self._pool(owner), request, body, (SECRET, self._secret))

    async def fetch_metrics(self, number: int) -> bytes:
        """Return what another worker counts; nothing where it does not answer."""
        return await self.ask(number, OWN_METRICS)

    async def ask(self, number: int, path: str) -> bytes:
        """Ask another worker for something of its own; nothing where it does not answer."""
        asking = self._pool(number).request("GET", path, _texts([(SECRET, self._secret)]))
        try:
            async with asyncio.timeout(GATHER_SECONDS), asking as response:
                return await response.read_body(_MOST_METRICS_BYTES)
        except (BodyTooLarge, ConnectFailed, ConnectionBroken, TimeoutError):
            return b""

    async def follow_events(self, put: Callable[[Event], None]) -> None:
        """Hand over what happens in the other workers, until cancelled; one that dies is asked again."""
        await asyncio.gather(*(self._follow(number, put) for number in self.others))

    async def _follow(self, number: int, put: Callable[[Event], None]) -> None:
        while True:
            asking = self._pool(number).request("GET", OWN_EVENTS, _texts([(SECRET, self._secret)]))
            with suppress(ConnectFailed, ConnectionBroken, TimeoutError):
                async with asking as response:
                    rest = b""
                    while piece := await response.read():
                        *lines, rest = (rest + piece).split(b"\n")
                        for line in lines:
                            if line.startswith(b"data: {") and b'"type"' in line:
                                put(msgspec.json.decode(line[len(b"data: ") :], type=Event))
            await asyncio.sleep(FOLLOW_SECONDS)

    def is_worker(self, request: Request) -> bool:
        """Tell whether a request comes from one of them."""
        return hmac.compare_digest(request.headers.get(SECRET, b""), self._secret)


async def forward_request(
    pool: Pool, request: Request, body: bytes, proof: tuple[bytes, bytes]
) -> ResponseStream:
    """Let another process answer a request, piece by piece, until it or the client ends.

    The proof is the header by which the other one knows us. Raises WorkerGone, and ConnectionBroken once the
    client was sent a part of the response.
    """
    headers = [pair for pair in request.header_pairs if pair[0] not in _NOT_FORWARDED]
    headers.append((CLIENT, f"{request.scheme} {request.address}".encode()))
    headers.append((HOST, request.headers.get(b"host", b"")))
    headers.append(proof)
    target = request.raw_path + (b"?" + request.query if request.query else b"")
    task = asyncio.current_task()
    if task is not None:  # cancelling ends the request to the other process as well
        request.when_gone(partial(_cancel, task))
    asking = pool.request(request.method, target.decode("latin-1"), _texts(headers), body)
    try:
        async with asking as response:
            if (PEER, GONE) in response.headers:
                raise WorkerGone
            return await _copy(response, request)
    except asyncio.CancelledError:
        if not request.is_gone or task is None:
            raise
        task.uncancel()
        raise ClientGone from None
    except (ConnectFailed, ConnectionBroken) as failure:
        if request.stream is not None:  # what was sent so far cannot be taken back
            raise
        # The connection broke because the process died, and its sessions with it. It may have acted on the
        # request, so the request is not sent again.
        raise WorkerGone from failure


async def _copy(response: PeerResponse, request: Request) -> ResponseStream:
    returned = [pair for pair in response.headers if pair[0] not in _NOT_RETURNED]
    stream = await request.open_stream(response.status, returned)
    while piece := await response.read():
        await stream.write(piece)
    return stream


def act_for_client(request: Request) -> None:
    """Take a forwarded request for one of the client that it was forwarded for."""
    client = request.headers.get(CLIENT, b"http ").decode("latin-1")
    request.scheme, _, request.address = client.partition(" ")
    request.headers[b"host"] = request.headers.get(HOST, b"")


def _texts(headers: list[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]


def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()


class WorkerEntrance:
    """The application as other workers reach it: on behalf of one of their clients."""

    def __init__(
        self,
        workers: Workers,
        handler: Handler,
        own: Mapping[str, Handler],
        on_reject: OnReject = log_rejection,
    ) -> None:
        self._workers = workers
        self._handler = handler
        self._own = own
        self._on_reject = on_reject

    def __call__(self, request: Request) -> Handled:
        """Answer another worker."""
        if not self._workers.is_worker(request):
            self._on_reject("sibling", request.address, 403)
            return Response(403)
        if request.path in self._own:
            return self._own[request.path](request)
        act_for_client(request)
        return self._handler(request)
