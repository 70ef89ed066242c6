"""The way over HTTP, to a proxy or straight to the upstream, with the least client there can be: a socket."""

import json
import select
import socket
import time

from bench.mercury.upstream import asked
from bench.message import WrongAnswer

LIMIT = 300.0
_HEAD = (
    "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n"
    "Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
)
_DONE = b"data: [DONE]\n\n"
_END = b"\r\n0\r\n\r\n"


class HttpWay:
    """Keeps connections open and sends requests on them."""

    def __init__(self, port: int, key: str) -> None:
        self._port = port
        self._key = key
        self._sockets: list[socket.socket] = []

    def chat(self, words: int) -> float:
        """Make one call and return the seconds that it took."""
        (connection,) = self._connections(1)
        request = self._request(words, stream=False)
        begin = time.perf_counter()
        connection.sendall(request)
        body = _whole(connection)
        seconds = time.perf_counter() - begin
        _check(json.loads(body)["choices"][0]["message"]["content"], words)
        return seconds

    def first_token(self, words: int) -> float:
        """Make one streamed call and return the seconds until something of the answer was there."""
        (connection,) = self._connections(1)
        begin = time.perf_counter()
        connection.sendall(self._request(words, stream=True))
        data = b""
        while data.count(b'"content":"') - data.count(b'"content":""') < 1:
            data += _received(connection)
        seconds = time.perf_counter() - begin
        while not data.endswith(_END):
            data += _received(connection)
        return seconds

    def streams(self, count: int, words: int) -> float:
        """Make streamed calls at once and return the seconds until the last one had ended."""
        connections = self._connections(count)
        request = self._request(words, stream=True)
        poll = select.poll()
        waiting = {connection.fileno(): (connection, bytearray()) for connection in connections}
        begin = time.perf_counter()
        for connection in connections:
            connection.sendall(request)
            poll.register(connection, select.POLLIN)
        while waiting:
            for number, _ in poll.poll(LIMIT * 1000):
                connection, data = waiting[number]
                data += _received(connection)
                if data.endswith(_END):
                    poll.unregister(number)
                    del waiting[number]
                    _check_stream(bytes(data), words)
        return time.perf_counter() - begin

    def close(self) -> None:
        """Close the connections."""
        for connection in self._sockets:
            connection.close()

    def _connections(self, count: int) -> list[socket.socket]:
        """Return open connections; a server closes those that have been idle for long."""
        closed, _, _ = select.select(self._sockets, [], [], 0)
        for connection in closed:
            connection.close()
            self._sockets.remove(connection)
        while len(self._sockets) < count:
            self._sockets.append(socket.create_connection(("127.0.0.1", self._port), LIMIT))
        return self._sockets[:count]

    def _request(self, words: int, *, stream: bool) -> bytes:
        body = json.dumps({**asked(words), "stream": stream}).encode()
        return _HEAD.format(port=self._port, key=self._key, length=len(body)).encode() + body


def _received(connection: socket.socket) -> bytes:
    data = connection.recv(1 << 18)
    if not data:
        raise WrongAnswer("the connection was closed in the middle of an answer")
    return data


def _whole(connection: socket.socket) -> bytes:
    """Read a response that says how long it is."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _received(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    if b" 200 " not in head[:16]:
        raise WrongAnswer(f"not the answer that was asked for: {data[:500]!r}")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += _received(connection)
    return body


def _check(text: str, words: int) -> None:
    if len(text.split()) != words:
        raise WrongAnswer(f"{len(text.split())} words instead of {words}: {text[:200]}")


def _check_stream(data: bytes, words: int) -> None:
    if _DONE not in data or data.count(b'"content":"') - data.count(b'"content":""') != words:
        raise WrongAnswer(f"not the stream that was asked for: {data[-500:]!r}")
