"""Attacks: clients that take all they can get, each in a process of its own.

`python -m bench.host.attacks NAME PORT TOKEN SECONDS` attacks for at most so long, and prints what it did.
"""

import json
import resource
import select
import socket
import sys
import time
from collections.abc import Callable, Iterator

from bench.host.calls import STATELESS, Call
from bench.load import complete

FLOOD_BYTES = 4 * 1024 * 1024
CHUNKED_BYTES = 12 * 1024 * 1024
SLOW_READERS = 1000
ASKED_EACH = 50
"""What a slow reader asks for, and does not read."""
BLOCK_SECONDS = 1.6
"""Longer than a turn of the loop may take before the watchdog tells of it, and half as long again for its own
pause between two looks."""
_GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
_POST = (
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\nContent-Type: application/json\r\n"
    b"Accept: application/json, text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)


def flood(port: int, token: str, until: float) -> str:
    """Send 4 MB of pipelined requests again and again, and read whatever comes."""
    data = _GET * (FLOOD_BYTES // len(_GET))
    return f"{sum(_push(port, data, until) for _ in _rounds(until))} bytes"


def chunks(port: int, token: str, until: float) -> str:
    """Send 12 MB in chunks of one byte again and again."""
    body = b"1\r\n \r\n" * (CHUNKED_BYTES // 6) + b"0\r\n\r\n"
    return f"{sum(_push(port, _POST % token.encode() + body, until) for _ in _rounds(until))} bytes"


def slow_readers(port: int, token: str, until: float) -> str:
    """Ask for much on a thousand connections, and read nothing."""
    readers = []
    for _ in range(SLOW_READERS):
        reader = _connect(port)
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.settimeout(0.0)
        readers.append(reader)
    sent = 0
    while time.monotonic() < until:
        for reader in readers:
            sent += _send_some(reader, _GET * ASKED_EACH)
        time.sleep(0.1)
    return f"{sent} bytes"


def blocked_thread(port: int, token: str, until: float) -> str:
    """Call a tool that blocks a thread, four times at once."""
    return _call_blocking(port, token, until, "block_thread", 4)


def blocked_loop(port: int, token: str, until: float) -> str:
    """Call a tool that blocks the process."""
    return _call_blocking(port, token, until, "block", 1)


ATTACKS: dict[str, Callable[[int, str, float], str]] = {
    "flood": flood,
    "chunks": chunks,
    "slow_readers": slow_readers,
    "blocked_thread": blocked_thread,
    "blocked_loop": blocked_loop,
}


def _rounds(until: float) -> Iterator[None]:
    while time.monotonic() < until:
        yield


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 30.0)


def _send_some(connection: socket.socket, data: bytes) -> int:
    try:
        return connection.send(data)
    except OSError:  # it takes no more, or has closed
        return 0


def _push(port: int, data: bytes, until: float) -> int:
    """Send as fast as the server takes it, and read what comes; returns how much went out."""
    left = memoryview(data)
    with _connect(port) as connection:
        connection.settimeout(0.0)
        while time.monotonic() < until:
            readable, writable, _ = select.select([connection], [connection] if left else [], [], 0.2)
            if readable and _is_over(connection):
                break
            if writable:
                left = left[_send_some(connection, bytes(left[:262144])) :]
            if not (readable or left):
                break  # everything is answered
    return len(data) - len(left)


def _is_over(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1024 * 1024)
    except OSError:
        return True


def _call_blocking(port: int, token: str, until: float, tool: str, at_once: int) -> str:
    call = Call("/mcp", tool, b'{"seconds":%g}' % BLOCK_SECONDS, b"done")
    template = call.template(port, STATELESS, b"Authorization: Bearer %b\r\n" % token.encode())
    request = call.filled(template, 1_000_000)
    done = 0
    for _ in _rounds(until):
        connections = [_connect(port) for _ in range(at_once)]
        for connection in connections:
            connection.sendall(request)
        answers = [_receive(connection) for connection in connections]
        done += sum(b"done" in answer for answer in answers)
        if not all(b"done" in answer for answer in answers):
            sys.exit(f"a call was refused: {answers[0][:300]!r}")
    return f"{done} calls"


def _receive(connection: socket.socket) -> bytes:
    answer = b""
    while not complete(answer):
        piece = connection.recv(65536)
        if not piece:
            break
        answer += piece
    connection.close()
    return answer


def main() -> None:
    """Read the command line and attack."""
    name, port, token, seconds = sys.argv[1:]
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    until = time.monotonic() + float(seconds)
    print(json.dumps({"did": ATTACKS[name](int(port), token, until)}))


if __name__ == "__main__":
    main()
