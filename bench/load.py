"""The HTTP load client: a few connections that each send a call, read the answer, and call again.

It runs in a process of its own (`python -m bench.load PORT ERA SECONDS CONNECTIONS [TOKEN]`), prints what it
counted as JSON, and does as little as it can for a call, so that the server is what is measured.
Every answer is looked at for its own text, and one in fifty is parsed and checked in full.
"""

import json
import select
import socket
import sys
import time

from bench.message import CALL, FIRST_ID, INITIALIZE, INITIALIZED, STATELESS, WrongAnswer, check

SAMPLE = 50
SETTLE = 0.2
IDS_PER_CONNECTION = 100_000
"""Every connection counts its ids in a range of its own, of this size."""

_REQUEST = (
    b"%s /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
    b"Accept: application/json, text/event-stream\r\n%sContent-Length: %d\r\n\r\n%s"
)
_SESSION_HEADERS = b"MCP-Protocol-Version: 2025-11-25\r\n"
_STATELESS_HEADERS = b"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n"


def load(port: int, era: str, seconds: float, connections: int, token: str = "") -> dict[str, float]:
    """Load the server for a while; return calls a second, our share of a core, and the count of answers."""
    lines = [Connection(port, era, index, token) for index in range(connections)]
    by_fd = {line.socket.fileno(): line for line in lines}
    poll = select.epoll()
    for fd, line in by_fd.items():
        poll.register(fd, select.EPOLLIN)
        line.send()
    _run(poll, by_fd, time.perf_counter() + SETTLE)
    before = sum(line.answered for line in lines)
    for line in lines:
        line.took.clear()
    begin, cpu = time.perf_counter(), time.process_time()
    _run(poll, by_fd, begin + seconds)
    spent, cpu = time.perf_counter() - begin, time.process_time() - cpu
    calls = sum(line.answered for line in lines) - before
    took = sorted(seconds for line in lines for seconds in line.took)
    for line in lines:
        line.close()
    answered = sum(line.answered for line in lines)
    median = took[len(took) // 2] if took else 0.0
    return {"rate": calls / spent, "busy": cpu / spent, "answered": answered, "median_ms": median * 1000}


def _run(poll: select.epoll, by_fd: "dict[int, Connection]", until: float) -> None:
    """Serve readable connections until the time has come."""
    while time.perf_counter() < until:
        for fd, _ in poll.poll(1.0):
            by_fd[fd].receive()


class Connection:
    """One keep-alive connection with at most one call on its way."""

    def __init__(self, port: int, era: str, index: int, token: str = "") -> None:
        self.answered = 0
        self.took: list[float] = []
        """Seconds that calls took, one in `SAMPLE`."""
        self._sent = 0.0
        self.socket = socket.create_connection(("127.0.0.1", port), 30.0)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._port = port
        self._number = FIRST_ID + index * IDS_PER_CONNECTION
        self._pending = b""
        self._session = b"" if era == STATELESS else self._open_session()
        headers = self._session.replace(b"%", b"%%") or _STATELESS_HEADERS
        if token:
            headers += b"Authorization: Bearer %s\r\n" % token.encode()
        length = len(CALL[era] % (self._number, self._number))
        self._request = _REQUEST % (b"POST", port, headers, length, CALL[era])

    def _open_session(self) -> bytes:
        """Do the handshake; return the headers that later requests of the session carry."""
        headers = _SESSION_HEADERS
        answer = self._exchange(b"POST", b"", INITIALIZE)
        for line in answer.split(b"\r\n\r\n", 1)[0].split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() == b"mcp-session-id":
                headers += b"Mcp-Session-Id: %s\r\n" % value.strip()
        self._exchange(b"POST", headers, INITIALIZED)
        return headers

    def _exchange(self, method: bytes, headers: bytes, body: bytes) -> bytes:
        """Send one request and wait for its whole answer."""
        self.socket.sendall(_REQUEST % (method, self._port, headers, len(body), body))
        data = self._whole()
        if not data.startswith(b"HTTP/1.1 20"):
            raise WrongAnswer(f"a message about the session was refused: {data[:300]!r}")
        return data

    def _whole(self) -> bytes:
        """Wait for one whole answer."""
        data, self._pending = self._pending, b""
        while not complete(data):
            chunk = self.socket.recv(65536)
            if not chunk:
                raise WrongAnswer("the server closed a connection")
            data += chunk
        return data

    def send(self) -> None:
        """Send the next call."""
        self._number += 1
        if self._number % SAMPLE == 0:
            self._sent = time.perf_counter()
        self.socket.send(self._request % (self._number, self._number))

    def receive(self) -> None:
        """Take what came; when the answer is whole, check it and send the next call."""
        chunk = self.socket.recv(65536)
        if not chunk:
            raise WrongAnswer("the server closed a connection")
        data = self._pending + chunk if self._pending else chunk
        if not complete(data):
            self._pending = data
            return
        self._pending = b""
        if not data.startswith(b"HTTP/1.1 200") or b'call %d"' % self._number not in data:
            raise WrongAnswer(f"wrong answer to a call: {data[:600]!r}")
        if self._number % SAMPLE == 0:
            self.took.append(time.perf_counter() - self._sent)
            check(payload(data), self._number)
        self.answered += 1
        self.send()

    def close(self) -> None:
        """Wait for the last answer and end the session, if there is one."""
        self._whole()
        if b"Mcp-Session-Id" in self._session:
            self._exchange(b"DELETE", self._session, b"")
        self.socket.close()


def complete(data: bytes) -> bool:
    """Whether these bytes are a whole HTTP response, with a length or in chunks."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return False
    head = data[:end].lower()
    start = head.find(b"\r\ncontent-length:")
    if start >= 0:
        return len(data) == end + 4 + int(head[start + 17 :].split(b"\r\n", 1)[0])
    if b"\r\ntransfer-encoding: chunked" in head:
        return data.endswith(b"\r\n0\r\n\r\n")
    return head.startswith((b"http/1.1 202", b"http/1.1 204"))


def payload(data: bytes) -> bytes:
    """Take the JSON out of a whole response, be it plain, in chunks, or an event stream."""
    head, _, body = data.partition(b"\r\n\r\n")
    head = head.lower()
    if b"transfer-encoding: chunked" in head:
        body = _unchunk(body)
    if b"text/event-stream" in head:
        events = [line[5:].strip() for line in body.splitlines() if line.startswith(b"data:")]
        body = events[-1] if events else b""
    return body


def _unchunk(body: bytes) -> bytes:
    """Join the chunks of a chunked body."""
    parts: list[bytes] = []
    while True:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        if length == 0:
            return b"".join(parts)
        parts.append(body[:length])
        body = body[length + 2 :]


def main() -> None:
    """Read the command line, load the server, print what was counted."""
    port, era, seconds, connections, *token = sys.argv[1:]
    try:
        print(json.dumps(load(int(port), era, float(seconds), int(connections), *token)))
    except (WrongAnswer, OSError) as problem:
        sys.exit(f"{type(problem).__name__}: {problem}")


if __name__ == "__main__":
    main()
