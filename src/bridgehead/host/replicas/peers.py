"""Peers: a request of a session goes to the process that has it, on whichever machine.

A session's id begins with the name of its process. What is forwarded is signed, with a key that only replicas
have, for one process and for a few minutes; the caller's own token goes along, and is checked where the
session is. A request that was forwarded once is answered there, and never forwarded again.
"""

from __future__ import annotations

import hmac
import re
import time
from collections import OrderedDict
from collections.abc import Callable

from bridgehead.mcp.http.message import Handled, Handler, Request, Response, ResponseStream
from bridgehead.mcp.http.server.connections import OnReject, log_rejection
from bridgehead.runtime.http import ConnectionBroken, Pool

from ..workers.forwarding import (
    CLIENT,
    CONNECT_SECONDS,
    GONE,
    HOST,
    PEER,
    WorkerGone,
    act_for_client,
    forward_request,
)
from .directory import Directory

VALID_SECONDS = 300.0
"""How old a signature may be, or how far ahead: the clocks of two machines need not agree."""
_MOST_POOLS = 256
_SESSION = re.compile(rb"([0-9a-f]{12})~")


class Peers:
    """The processes of all replicas, as one of them sees them."""

    def __init__(
        self, directory: Directory, keys: tuple[bytes, ...], now: Callable[[], float] = time.time
    ) -> None:
        self._directory = directory
        self._keys = keys
        self._now = now
        self._pools: OrderedDict[str, Pool] = OrderedDict()

    @property
    def session_prefix(self) -> str:
        """What the ids of our sessions begin with, so that every process knows whose they are."""
        return f"{self._directory.node}~"

    def owner_of(self, session: bytes) -> str | None:
        """Return the process that has a session; None where that is us, or nobody."""
        found = _SESSION.match(session)
        node = "" if found is None else found[1].decode()
        return None if node in {"", self._directory.node} else node

    async def forward(self, owner: str, request: Request, body: bytes) -> ResponseStream:
        """Let another process answer a request, piece by piece. Raises WorkerGone and StoreUnavailable."""
        address = await self._directory.find(owner)
        if address is None:
            raise WorkerGone
        try:
            return await forward_request(self._pool(address), request, body, self._sign(owner, request))
        except (WorkerGone, ConnectionBroken):
            self._directory.forget(owner)
            raise

    async def close(self) -> None:
        """Close the connections to others."""
        for pool in self._pools.values():
            await pool.close()

    def _pool(self, address: str) -> Pool:
        pool = self._pools.get(address)
        if pool is None:
            pool = self._pools[address] = Pool(f"http://{address}", connect_seconds=CONNECT_SECONDS)
            if len(self._pools) > _MOST_POOLS:
                self._pools.popitem(last=False)
        self._pools.move_to_end(address)
        return pool

    # --- signatures ----------------------------------------------------------------------------------------

    def _sign(self, owner: str, request: Request) -> tuple[bytes, bytes]:
        client, stamp = f"{request.scheme} {request.address}".encode(), b"%d" % self._now()
        text = _text(owner, stamp, request, client, request.headers.get(b"host", b""))
        return PEER, b"%s %s %s" % (owner.encode(), stamp, _mac(self._keys[0], text))

    def is_peer(self, request: Request) -> bool:
        """Tell whether a request was forwarded to this process by one that has our keys."""
        _, _, rest = request.headers.get(PEER, b"").partition(b" ")
        stamp, _, mac = rest.partition(b" ")
        if self.is_for_another(request) or not stamp.isdigit() or len(stamp) > len("9" * 12):
            return False
        if abs(int(stamp) - self._now()) > VALID_SECONDS:
            return False
        text = _text(
            self._directory.node,
            stamp,
            request,
            request.headers.get(CLIENT, b""),
            request.headers.get(HOST, b""),
        )
        return any(hmac.compare_digest(mac, _mac(key, text)) for key in self._keys)

    def is_for_another(self, request: Request) -> bool:
        """Tell whether a request was meant for a process that had our address before us."""
        owner, _, _ = request.headers.get(PEER, b"").partition(b" ")
        return owner != self._directory.node.encode()


def _text(owner: str, stamp: bytes, request: Request, client: bytes, host: bytes) -> bytes:
    """Put together what is signed: who is to answer what, and on whose behalf."""
    target = request.raw_path + b"?" + request.query
    return b"\n".join((owner.encode(), stamp, request.method.encode(), target, client, host))


def _mac(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256").hex().encode()


class PeerEntrance:
    """The application as other replicas reach it: on behalf of one of their clients."""

    def __init__(
        self,
        peers: Peers,
        app: Handler,
        otherwise: Handler | None = None,
        on_reject: OnReject = log_rejection,
    ) -> None:
        self._peers = peers
        self._app = app
        self._otherwise = otherwise
        """Who answers what no replica has signed: workers of the same host come in by the same door."""
        self._on_reject = on_reject

    def __call__(self, request: Request) -> Handled:
        """Answer another replica."""
        if self._peers.is_peer(request):
            act_for_client(request)
            return self._app(request)
        is_forwarded = PEER in request.headers
        if not is_forwarded and self._otherwise is not None:
            return self._otherwise(request)
        self._on_reject("peer", request.address, 403)
        is_gone = is_forwarded and self._peers.is_for_another(request)
        return Response(403, headers=((PEER, GONE),) if is_gone else ())
