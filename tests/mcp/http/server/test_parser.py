"""Parser: whatever bytes come, in whatever pieces, the server lives on and says the same.

The corpus is that of `make adversary`, which also asks other servers what they make of it.
"""

import asyncio
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridgehead.mcp.http.message import Request, Response
from bridgehead.mcp.http.server.connections import Connections
from bridgehead.mcp.http.server.protocol import Http1Protocol
from tests.adversary.cases import CASES, END

QUICK = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
MOST_TURNS = 20_000


class Transport:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written = b""
        self.is_closed = False

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else None

    def write(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def pause_reading(self) -> None:
        """Nobody sends more than there is."""

    resume_reading = pause_reading


def answer(request: Request) -> Any:
    """Answer at once where the body is there, and else when it is."""
    return said(request) if request.is_complete else later(request)


def said(request: Request) -> Response:
    return Response(200, f"{request.method} {request.path!r} {len(request.body)}".encode())


async def later(request: Request) -> Response:
    while await request.read():
        pass
    return Response(200, f"{request.method} {request.path!r}".encode())


async def replay(pieces: list[bytes]) -> tuple[list[bytes], bool]:
    """Give pieces to a connection, and return the status lines it wrote, and whether it was closed."""
    loop = asyncio.get_running_loop()
    connections = Connections(answer, loop, on_reject=lambda *_: None)
    protocol, transport = Http1Protocol(connections), Transport()
    protocol.connection_made(transport)  # type: ignore[arg-type]
    for piece in pieces:
        if not transport.is_closed:
            protocol.data_received(piece)
            await asyncio.sleep(0)
    for _ in range(MOST_TURNS):
        if transport.is_closed or protocol.is_idle:
            break
        await asyncio.sleep(0)
        if protocol.running is None and not protocol._has_turn:  # noqa: SLF001 - it waits for more bytes
            break
    for _ in range(3):
        await asyncio.sleep(0)
    protocol.connection_lost(None)
    await asyncio.sleep(0)
    lines = [line for line in transport.written.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
    return lines, transport.is_closed


def cut(data: bytes, seed: int) -> list[bytes]:
    dice = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
    places = sorted(dice.sample(range(1, len(data)), min(len(data) - 1, dice.randint(1, 40))))
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_does_not_depend_on_how_it_came(name: str) -> None:
    async def behaviour() -> None:
        data = CASES[name] + END
        whole = await replay([data])
        assert whole[0] or not whole[1], "closed without a status"
        for seed in range(6):
            assert await replay(cut(data, seed)) == whole

    asyncio.run(behaviour())


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Take cases and change a few bytes: put some in, take some out, write over some."""
    data = bytearray(b"".join(draw(st.lists(st.sampled_from(list(CASES.values())), min_size=1, max_size=3))))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 4))] = draw(st.binary(max_size=4))
    return bytes(data)


@QUICK
@given(data=st.binary(max_size=400) | mutated(), seed=st.integers(0, 1000))
def test_no_bytes_break_a_connection(data: bytes, seed: int) -> None:
    async def behaviour() -> None:
        whole = await replay([data + END])
        assert all(line.split()[1].isdigit() for line in whole[0])
        if len(data) > 1:
            assert await replay(cut(data + END, seed)) == whole

    asyncio.run(behaviour())
