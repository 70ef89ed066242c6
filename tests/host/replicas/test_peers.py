"""Signatures between replicas: only what one of them forwarded, now and to this process, is answered."""

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from bridgehead.host.replicas.peers import VALID_SECONDS, PeerEntrance, Peers
from bridgehead.host.workers.forwarding import CLIENT, HOST, PEER
from bridgehead.mcp.http.message import Request, Response, ResponseStream

OURS, THEIRS = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
KEY, OTHER = b"k" * 32, b"o" * 32


class Asked(Request):
    async def read(self) -> bytes:
        return b""

    async def open_stream(self, status: int, headers: Any) -> ResponseStream:
        raise NotImplementedError


def peers(node: str = OURS, keys: tuple[bytes, ...] = (KEY,), now: float = 1e9) -> Peers:
    directory: Any = SimpleNamespace(node=node)
    return Peers(directory, keys, lambda: now)


def forwarded(by: Peers, owner: str = OURS) -> Asked:
    """Make what arrives when a process forwards a request."""
    request = Asked("POST", b"/mcp", "/mcp", b"", [(b"host", b"team.example")])
    request.scheme, request.address = "https", "203.0.113.9"
    name, signature = by._sign(owner, request)  # noqa: SLF001 - what is forwarded goes over a socket otherwise
    pairs = {name: signature, CLIENT: b"https 203.0.113.9", HOST: b"team.example"}
    arrived = Asked("POST", b"/mcp", "/mcp", b"", list(pairs.items()))
    arrived.address = "10.0.0.2"
    return arrived


def test_what_a_replica_forwarded_is_answered_for_its_client() -> None:
    seen: list[Request] = []

    def app(request: Request) -> Response:
        seen.append(request)
        return Response(200)

    answer = PeerEntrance(peers(), app)(forwarded(peers(THEIRS)))

    assert isinstance(answer, Response)
    assert answer.status == 200
    assert (seen[0].address, seen[0].scheme, seen[0].headers[b"host"]) == (
        "203.0.113.9",
        "https",
        b"team.example",
    )


@pytest.mark.parametrize(
    "arrived",
    [
        forwarded(peers(THEIRS, (OTHER,))),
        forwarded(peers(THEIRS), owner=THEIRS),
        forwarded(peers(THEIRS, now=1e9 - VALID_SECONDS - 1)),
        forwarded(peers(THEIRS, now=1e9 + VALID_SECONDS + 1)),
        forwarded(peers(THEIRS, (OTHER, KEY))),
        Asked("POST", b"/mcp", "/mcp", b"", []),
        Asked("POST", b"/mcp", "/mcp", b"", [(PEER, b"aaaaaaaaaaaa x y")]),
        Asked("POST", b"/mcp", "/mcp", b"", [(PEER, b"aaaaaaaaaaaa 1000000000 ")]),
    ],
)
def test_anything_else_is_turned_away(arrived: Asked) -> None:
    rejected: list[tuple[str, str, int]] = []

    answer = PeerEntrance(peers(), lambda _: Response(200), None, lambda *what: rejected.append(what))(
        arrived
    )

    assert isinstance(answer, Response)
    assert answer.status == 403
    assert [what[0] for what in rejected] == ["peer"]


def test_on_whose_behalf_cannot_be_changed_on_the_way() -> None:
    arrived = forwarded(peers(THEIRS))
    arrived.headers[CLIENT] = b"https 127.0.0.1"

    assert not peers().is_peer(arrived)


def test_a_signature_is_valid_although_a_second_ends_while_it_is_made() -> None:
    theirs, ticks = peers(THEIRS), itertools.count(10**9)
    theirs._now = lambda: float(next(ticks))  # noqa: SLF001

    assert peers().is_peer(forwarded(theirs))


def test_keys_rotate() -> None:
    assert peers(keys=(OTHER, KEY)).is_peer(forwarded(peers(THEIRS, (KEY,))))
    assert peers(keys=(KEY, OTHER)).is_peer(forwarded(peers(THEIRS, (OTHER, KEY))))


@pytest.mark.parametrize(
    ("session", "owner"),
    [
        (b"bbbbbbbbbbbb~x", THEIRS),
        (b"aaaaaaaaaaaa~x", None),
        (b"bbbbbbbbbbb~x", None),
        (b"BBBBBBBBBBBB~x", None),
        (b"0~x", None),
        (b"", None),
        (b"bbbbbbbbbbbb", None),
    ],
)
def test_a_session_names_its_owner(session: bytes, owner: str | None) -> None:
    assert peers().owner_of(session) == owner
