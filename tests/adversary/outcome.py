"""Outcome: what a server makes of some bytes: the responses in their order, and whether it closes."""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, field

QUIET_SECONDS = 1.0
"""How long nothing must come until a server is taken to wait for more."""
_BODYLESS = (204, 304)


@dataclass
class Outcome:
    """What came back."""

    statuses: list[int] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    is_closed: bool = False

    @property
    def reached_end(self) -> bool:
        """Whether the good request at the end was understood as the last one."""
        return bool(self.bodies) and self.bodies[-1] == b"GET /end 0"

    @property
    def verdict(self) -> str:
        """What is compared: the statuses, whether it was in step to the end, whether it waits for more."""
        said = " ".join(map(str, self.statuses)) or "nothing"
        return f"{said}{', in step' if self.reached_end else ''}{'' if self.is_closed else ', waits'}"


async def send(port: int, pieces: list[bytes]) -> Outcome:
    """Send pieces, and read what comes until the server closes or waits."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    sending = asyncio.create_task(_send(writer, pieces))
    data, is_closed = b"", False
    try:
        while True:
            piece = await asyncio.wait_for(reader.read(65536), QUIET_SECONDS)
            if not piece:
                is_closed = True
                break
            data += piece
    except TimeoutError:
        pass
    except OSError:
        is_closed = True
    sending.cancel()
    writer.transport.abort()
    outcome = Outcome(is_closed=is_closed)
    with suppress(ValueError, IndexError):
        _read(data, outcome)
    return outcome


async def _send(writer: asyncio.StreamWriter, pieces: list[bytes]) -> None:
    with suppress(OSError):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            if len(pieces) > 1:
                await asyncio.sleep(0.002)  # so that each piece is a segment of its own


def _read(data: bytes, outcome: Outcome) -> None:
    while data:
        head, mark, data = data.partition(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1])
        if not mark or 100 <= status < 200:
            continue
        body, data = _body(head.lower(), status, data)
        outcome.statuses.append(status)
        outcome.bodies.append(body)


def _body(head: bytes, status: int, data: bytes) -> tuple[bytes, bytes]:
    if status in _BODYLESS or b"\r\nx-method: head" in head:
        return b"", data
    if b"transfer-encoding: chunked" in head:
        body = b""
        while True:
            size, _, data = data.partition(b"\r\n")
            length = int(size, 16)
            body += data[:length]
            data = data[length + 2 :]
            if not length:
                return body, data
    if b"content-length:" not in head:
        return data, b""
    length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
    return data[:length], data[length:]


def cut(data: bytes, seed: int) -> list[bytes]:
    """Cut bytes at random places, the same for the same seed."""
    dice = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
    places = sorted(dice.sample(range(1, len(data)), min(len(data) - 1, dice.randint(1, 12))))
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]
