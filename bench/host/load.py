"""The load client: connections that each make one call after the other, tool after tool.

`python -m bench.host.load PORT TOKEN ERA SECONDS CONNECTIONS MIX` prints what it counted as JSON. Does as
little as it can for a call, so that the server is what is measured; every answer is looked at.
"""

import json
import select
import socket
import sys
import time
from itertools import cycle

from bench.host.calls import HANDSHAKE, INITIALIZE, INITIALIZED, MIXES, NUMBER, Call, post
from bench.load import complete
from bench.message import WrongAnswer

SETTLE = 0.3


class Tally:
    """What came of the calls to one path."""

    def __init__(self) -> None:
        self.right = 0
        self.errors = 0
        """Answers in which a tool says that it could not."""
        self.failed = 0
        """Anything else: another status, another answer, a closed connection."""
        self.seconds: list[float] = []

    def summary(self) -> dict[str, float]:
        """Give the counts, and how long most calls took, in milliseconds."""
        ordered = sorted(self.seconds)

        def at(share: float) -> float:
            return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 if ordered else 0.0

        return {
            "right": self.right,
            "errors": self.errors,
            "failed": self.failed,
            "p50": at(0.5),
            "p99": at(0.99),
            "most": at(1.0),
        }


class Connection:
    """One keep-alive connection with at most one call on its way."""

    def __init__(self, port: int, token: str, era: str, index: int, calls: list[Call]) -> None:
        self._port = port
        self._era = era
        self._auth = b"Authorization: Bearer %s\r\n" % token.encode() if token else b""
        self._calls = calls
        self._number = 10 ** (NUMBER - 1) + index * 50_000
        self._offset = index
        self._pending = b""
        self._began = 0.0
        self.socket = self._connected()
        turn = index % len(calls)
        self._templates = cycle(self._prepared(calls[turn:] + calls[:turn]))
        self._call = calls[0]

    def _connected(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self._port), 30.0)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _prepared(self, calls: list[Call]) -> list[tuple[Call, bytes]]:
        sessions = {path: self._session(path) for path in {call.path for call in calls}}
        return [
            (call, call.template(self._port, self._era, self._auth + sessions[call.path])) for call in calls
        ]

    def _session(self, path: str) -> bytes:
        """Shake hands at a path, where the era has that; return the headers of what follows."""
        if self._era != HANDSHAKE:
            return b""
        headers = b"MCP-Protocol-Version: 2025-11-25\r\n"
        answer = self._exchange(post(path, self._port, self._auth, INITIALIZE))
        for line in answer.split(b"\r\n\r\n", 1)[0].split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() == b"mcp-session-id":
                headers += b"Mcp-Session-Id: %s\r\n" % value.strip()
        self._exchange(post(path, self._port, self._auth + headers, INITIALIZED))
        return headers

    def _exchange(self, request: bytes) -> bytes:
        self.socket.sendall(request)
        data = b""
        while not complete(data):
            chunk = self.socket.recv(65536)
            if not chunk:
                raise WrongAnswer("the server closed a connection")
            data += chunk
        if not data.startswith(b"HTTP/1.1 20"):
            raise WrongAnswer(f"a session was refused: {data[:300]!r}")
        return data

    def send(self) -> None:
        """Make the next call."""
        self._number += 1
        self._call, template = next(self._templates)
        self._began = time.perf_counter()
        self.socket.send(self._call.filled(template, self._number))

    def receive(self, tallies: dict[str, Tally]) -> None:
        """Take what came; when the answer is whole, judge it and make the next call."""
        chunk = self.socket.recv(65536)
        if not chunk:
            raise WrongAnswer("the server closed a connection")
        data = self._pending + chunk if self._pending else chunk
        if not complete(data):
            self._pending = data
            return
        self._pending = b""
        self._judge(data, tallies[self._call.path])
        self.send()

    def _judge(self, data: bytes, tally: Tally) -> None:
        tally.seconds.append(time.perf_counter() - self._began)
        if data.startswith(b"HTTP/1.1 200") and self._call.is_right(data, self._number):
            tally.right += 1
        elif data.startswith(b"HTTP/1.1 200") and b'"isError":true' in data:
            tally.errors += 1
        else:
            tally.failed += 1
            if tally.failed < 4:
                sys.stderr.write(f"wrong: {data[:500]!r}\n")


def load(
    port: int, token: str, era: str, seconds: float, connections: int, calls: list[Call]
) -> dict[str, object]:
    """Load the server for a while; count by path."""
    lines = [Connection(port, token, era, index, calls) for index in range(connections)]
    by_fd = {line.socket.fileno(): line for line in lines}
    poll = select.epoll()
    for fd, line in by_fd.items():
        poll.register(fd, select.EPOLLIN)
        line.send()
    _run(poll, by_fd, SETTLE, {call.path: Tally() for call in calls})
    tallies = {call.path: Tally() for call in calls}
    begin, cpu = time.perf_counter(), time.process_time()
    _run(poll, by_fd, seconds, tallies)
    spent, cpu = time.perf_counter() - begin, time.process_time() - cpu
    answered = sum(tally.right + tally.errors + tally.failed for tally in tallies.values())
    return {
        "rate": answered / spent,
        "busy": cpu / spent,
        "paths": {path: tally.summary() for path, tally in tallies.items()},
    }


def _run(poll: select.epoll, by_fd: dict[int, Connection], seconds: float, tallies: dict[str, Tally]) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        for fd, _ in poll.poll(1.0):
            by_fd[fd].receive(tallies)


def main() -> None:
    """Read the command line, load the server, print what was counted."""
    port, token, era, seconds, connections, mix = sys.argv[1:]
    calls = list(MIXES[mix])
    try:
        print(json.dumps(load(int(port), token, era, float(seconds), int(connections), calls)))
    except (WrongAnswer, OSError) as problem:
        sys.exit(f"{type(problem).__name__}: {problem}")


if __name__ == "__main__":
    main()
