"""Forwarding: a request about a session or a task goes to the process that owns it, on whichever machine.

Processes reach each other at sockets of their own. Each request there is signed, with a key that only the
processes of this service have, for one process, with its headers and its body. A signature holds for a few
minutes, and once. A client's own token goes along and is checked by the owner again. A forwarded request is
answered there and never forwarded again. Which requests are forwarded is decided in `routing`.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from itertools import count
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from bridgehead.mcp import Limits, TaskRecord
from bridgehead.mcp.http.guard import read_body
from bridgehead.mcp.http.message import (
    AnyResponse,
    ClientGone,
    Handler,
    HeaderPairs,
    Request,
    Response,
    ResponseStream,
)
from bridgehead.mcp.http.rejection import Rejection
from bridgehead.mcp.http.server.connections import OnReject, log_rejection
from bridgehead.runtime import logs
from bridgehead.runtime.http import BodyTooLarge, ConnectFailed, ConnectionBroken, Pool
from bridgehead.runtime.stores import StoreUnavailable

from .owners import Owners

PEER = b"x-bridgehead-peer"
"""Carries the signature: the names of the addressed process and of the sender, the number of the request, a
time in seconds, the digest of the body, and an HMAC over these and the rest of the head."""
GONE = b"gone"
"""The value of `PEER` in a response: the addressed process is gone, and another one has its address."""
CLOCK = b"clock "
"""Begins the value of `PEER` in the response to a signature that is too old or too new; seconds follow."""
CLIENT = b"x-bridgehead-client"
"""Scheme and address of the client that a request is forwarded for; absent if a process asks for itself."""
HOST = b"x-bridgehead-host"
OWN_TASK = "/own-task"
END_SESSION = "/end-session"
SIGNATURE_SECONDS = 300.0
"""How old a signature may be, or how far ahead: the clocks of two machines need not agree."""
CONNECT_SECONDS = 2.0
ASK_SECONDS = 2.0
_HOP_BY_HOP = {b"connection", b"keep-alive", b"transfer-encoding", b"expect", b"upgrade", b"te"}
_NOT_FORWARDED = frozenset({*_HOP_BY_HOP, b"host", b"content-length", PEER, CLIENT, HOST})
_SIGNED = frozenset({CLIENT, HOST})
_MAX_DIGITS = 12
_NOT_RETURNED = frozenset({b"connection", b"transfer-encoding", b"date"})
_CLOCK_LINE_SECONDS = 60.0
_MAX_POOLS = 256
_MAX_SENDERS = 1000
_ONCE_WINDOW = 4096
"""Requests of one sender that may overtake each other."""
_MAX_ANSWER_BYTES = 16 * 1024 * 1024


log = logs.logger("host.forwarding")


class OwnerGone(Exception):
    """The process cannot be reached."""


class ClocksDiffer(Exception):
    """The owner refuses our signatures: its clock and ours are too far apart."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"The clocks of two servers differ by {seconds:.0f} s; {SIGNATURE_SECONDS:.0f} s are allowed."
        )


class Signature(NamedTuple):
    """A signature that was made for this process with one of our keys."""

    age: float
    """In seconds; negative if the other process's clock is ahead."""
    sender: str
    number: int
    body: bytes
    """The digest that the body must have."""


class Once:
    """The numbers that one sender has used: the newest, and one bit for each of those before it."""

    __slots__ = ("_newest", "_used")

    def __init__(self) -> None:
        self._newest = self._used = 0

    def use(self, number: int) -> bool:
        """Return whether a number is new. One that is too old to know counts as used."""
        ahead = number - self._newest
        if ahead > 0:
            kept = self._used << ahead if ahead < _ONCE_WINDOW else 0
            self._newest, self._used = number, (kept | 1) & ((1 << _ONCE_WINDOW) - 1)
            return True
        if -ahead >= _ONCE_WINDOW or self._used >> -ahead & 1:
            return False
        self._used |= 1 << -ahead
        return True


class Peers:
    """A process's client for all other processes."""

    def __init__(self, owners: Owners, keys: tuple[bytes, ...], now: Callable[[], float] = time.time) -> None:
        self.owners = owners
        self._keys = keys
        self._now = now
        self._pools: OrderedDict[str, Pool] = OrderedDict()
        self._numbers = count(1)
        self._used: OrderedDict[str, Once] = OrderedDict()
        """By sender; the one that was heard of longest ago goes first."""

    async def forward(self, owner: str, request: Request, body: bytes) -> ResponseStream:
        """Stream the answer of another process to the client, until either of them ends it.

        Raises OwnerGone and StoreUnavailable, and ConnectionBroken once the client was sent a part of the
        response.
        """
        address = await self.owners.find(owner)
        if address is None:
            raise OwnerGone
        target = request.raw_path + (b"?" + request.query if request.query else b"")
        client = f"{request.scheme} {request.address}".encode()
        host = request.headers.get(b"host", b"")
        headers = [pair for pair in request.header_pairs if pair[0] not in _NOT_FORWARDED]
        headers += [(CLIENT, client), (HOST, host)]
        headers.append((PEER, self._sign(owner, request.method, target, headers, body)))
        task = asyncio.current_task()
        if task is not None:  # a client that leaves ends the request to the other process as well
            request.when_gone(task.cancel)
        pool = await self._pool(address)
        asking = pool.request(request.method, target.decode("latin-1"), _decode(headers), body)
        try:
            async with asking as response:
                if (PEER, GONE) in response.headers:
                    raise OwnerGone  # noqa: TRY301 - the address is forgotten below
                skew = (response.header(PEER.decode()) or "").encode()
                if skew.startswith(CLOCK):
                    raise ClocksDiffer(float(skew.removeprefix(CLOCK)))
                returned = [pair for pair in response.headers if pair[0] not in _NOT_RETURNED]
                stream = await request.open_stream(response.status, returned)
                while piece := await response.read():
                    await stream.write(piece)
                return stream
        except asyncio.CancelledError:
            if not request.is_gone or task is None:
                raise
            task.uncancel()
            raise ClientGone from None
        except OwnerGone:
            self.owners.forget(owner)
            raise
        except (ConnectFailed, ConnectionBroken) as failure:
            self.owners.forget(owner)
            if request.stream is not None:  # a part was sent already and cannot be taken back
                raise
            # The connection broke because the process died, and its sessions with it. It may have acted on
            # the request, so the request is not sent again.
            raise OwnerGone from failure

    async def ask(self, owner: str, target: str) -> bytes:
        """GET a path of another process; empty if it does not answer."""
        try:
            async with asyncio.timeout(ASK_SECONDS):
                address = await self.owners.find(owner)
                if address is None:
                    return b""
                signed = _decode([(PEER, self._sign(owner, "GET", target.encode()))])
                async with (await self._pool(address)).request("GET", target, signed) as response:
                    return await response.read_body(_MAX_ANSWER_BYTES) if response.status == 200 else b""  # noqa: PLR2004
        except (BodyTooLarge, ConnectFailed, ConnectionBroken, StoreUnavailable, TimeoutError):
            return b""

    async def fetch_task(self, task_id: str) -> TaskRecord | None:
        """Fetch a task from the process that owns it; None if that is this one or it does not answer."""
        owner = self.owners.owner_of(task_id.encode())
        answer = b"" if owner is None else await self.ask(owner, f"{OWN_TASK}?{quote(task_id, safe='')}")
        if not answer:
            return None

        return msgspec.msgpack.decode(answer, type=TaskRecord)

    async def close(self) -> None:
        """Close the connections to others."""
        for pool in self._pools.values():
            await pool.close()

    async def _pool(self, address: str) -> Pool:
        pool = self._pools.get(address)
        if pool is None:
            pool = self._pools[address] = Pool(f"http://{address}", connect_seconds=CONNECT_SECONDS)
        self._pools.move_to_end(address)
        while len(self._pools) > _MAX_POOLS:
            _, oldest = self._pools.popitem(last=False)
            await oldest.close()  # requests in progress are completed
        return pool

    # --- signatures ----------------------------------------------------------------------------------------

    def _sign(
        self, owner: str, method: str, target: bytes, headers: HeaderPairs = (), body: bytes = b""
    ) -> bytes:
        stamp, number = b"%d" % self._now(), b"%d" % next(self._numbers)
        words = (owner.encode(), self.owners.name.encode(), number, stamp, _digest(body))
        return b" ".join((*words, _mac(self._keys[0], words, method, target, headers)))

    def read_signature(self, request: Request) -> Signature | None:
        """Return the signature of a request if it was made for this process with one of our keys.

        The caller refuses an age beyond `SIGNATURE_SECONDS`, either way, another body, and a second use.
        """
        *words, mac = request.headers.get(PEER, b"").split(b" ")
        if len(words) != 5 or self.is_for_another(request):  # noqa: PLR2004 - as `_sign` writes them
            return None
        _, sender, number, stamp, body = words
        if not (number.isdigit() and stamp.isdigit()) or max(len(number), len(stamp)) > _MAX_DIGITS:
            return None
        target = request.raw_path + (b"?" + request.query if request.query else b"")
        headers = [
            pair for pair in request.header_pairs if pair[0] in _SIGNED or pair[0] not in _NOT_FORWARDED
        ]
        if not any(
            hmac.compare_digest(mac, _mac(key, words, request.method, target, headers)) for key in self._keys
        ):
            return None
        return Signature(self._now() - int(stamp), sender.decode(), int(number), body)

    def use(self, signature: Signature) -> bool:
        """Return whether a signature is used for the first time."""
        once = self._used.setdefault(signature.sender, Once())
        self._used.move_to_end(signature.sender)
        if len(self._used) > _MAX_SENDERS:
            self._used.popitem(last=False)
        return once.use(signature.number)

    def is_for_another(self, request: Request) -> bool:
        """Tell whether a request was meant for a process that had our address before."""
        owner, _, _ = request.headers.get(PEER, b"").partition(b" ")
        return owner != self.owners.name.encode()


class PeerEndpoint:
    """Answers other processes: their own requests, and those that they forward for a client."""

    def __init__(
        self,
        peers: Peers,
        app: Handler,
        own: Mapping[str, Handler],
        on_reject: OnReject = log_rejection,
        limits: Limits | None = None,
    ) -> None:
        self._limits = limits or Limits()
        self._peers = peers
        self._app = app
        self._own = own
        self._on_reject = on_reject
        self._next_clock_line = 0.0
        """When a clock that differs is logged again, by the monotonic clock."""

    async def __call__(self, request: Request) -> AnyResponse:
        """Answer another process."""
        signature = self._peers.read_signature(request)
        if signature is None:
            is_gone = PEER in request.headers and self._peers.is_for_another(request)
            return self._refuse(request, ((PEER, GONE),) if is_gone else ())
        if abs(signature.age) > SIGNATURE_SECONDS:
            return self._refuse_clock(request, signature.age)
        if not self._peers.use(signature):
            return self._refuse(request)
        try:
            body, _ = await read_body(request, self._limits)
        except Rejection as rejection:
            return rejection.response
        if not hmac.compare_digest(_digest(body), signature.body):
            return self._refuse(request)
        request.body = body  # for the handler, which reads it again
        client = request.headers.get(CLIENT)
        if client is None:  # so no client request reaches the internal paths
            handler = self._own.get(request.path)
            return Response(404) if handler is None else await handler(request)
        request.scheme, _, request.address = client.decode("latin-1").partition(" ")
        request.headers[b"host"] = request.headers.get(HOST, b"")
        return await self._app(request)

    def _refuse(self, request: Request, headers: HeaderPairs = ()) -> Response:
        self._on_reject("peer", request.address, 403)
        return Response(403, headers=headers)

    def _refuse_clock(self, request: Request, age: float) -> Response:
        self._on_reject("clock", request.address, 403)
        now = time.monotonic()
        if now >= self._next_clock_line:  # at most once a minute
            self._next_clock_line = now + _CLOCK_LINE_SECONDS
            log.error(
                "the clocks of two servers differ, so neither accepts the other's requests",
                address=request.address,
                seconds=round(abs(age)),
                allowed=SIGNATURE_SECONDS,
                next_step="Synchronise the clocks of all servers (NTP).",
            )
        return Response(403, headers=((PEER, CLOCK + b"%d" % abs(age)),))


def _mac(key: bytes, words: Sequence[bytes], method: str, target: bytes, headers: HeaderPairs) -> bytes:
    lines = (b" ".join(words), method.encode(), target, *(b"%b: %b" % pair for pair in headers))
    return hmac.digest(key, b"\n".join(lines), "sha256").hex().encode()


def _digest(body: bytes) -> bytes:
    return sha256(body).hexdigest().encode()


def _decode(headers: list[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
