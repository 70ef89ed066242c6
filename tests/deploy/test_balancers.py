"""Balancers: HAProxy, nginx, Caddy and Envoy with our settings, each in front of two real replicas."""

import http.client
import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.deploy.balancer import FILES, balancing, need_program
from tests.support.host_command import Command, serving
from tests.support.http_server import JSON_POST, mirrored
from tests.support.messages import Json, call, encode, stateless
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE

KEPT = 1200
"""Requests on one connection: more than nginx lets through by default."""


@pytest.fixture(scope="module")
def replicas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Command, Command]]:
    folder = tmp_path_factory.mktemp("replicas")
    with (
        serving(folder / "a", "--bridges", "alpha") as one,
        serving(folder / "b", "--bridges", "alpha") as other,
    ):
        yield one, other


@pytest.fixture(params=list(FILES))
def client(
    request: pytest.FixtureRequest, replicas: tuple[Command, Command], tmp_path: Path
) -> Iterator[http.client.HTTPConnection]:
    """A connection to a balancer in front of the replicas."""
    program = need_program(request.param)
    with balancing(request.param, program, tmp_path, (replicas[0].port, replicas[1].port)) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        limit = time.monotonic() + PATIENCE
        while post(connection) != 200:  # it listens before it knows the replicas
            assert time.monotonic() < limit
            time.sleep(0.05)
        yield connection
        connection.close()


def send(connection: http.client.HTTPConnection, message: Json) -> http.client.HTTPResponse:
    headers = {name: value for name, value in {**JSON_POST, **mirrored(message)}.items() if value is not None}
    connection.request("POST", "/alpha/mcp", encode(message), headers)
    return connection.getresponse()


def post(connection: http.client.HTTPConnection, tool: str = "alpha_echo") -> int:
    """Call a tool, and return the status of a whole answer."""
    response = send(connection, stateless("tools/call", call(tool, {"text": "hello"})))
    body = response.read()
    assert response.status != 200 or b'"result"' in body, body
    return response.status


def test_one_connection_carries_more_than_a_thousand_requests(client: http.client.HTTPConnection) -> None:
    socket = client.sock

    statuses = {post(client) for _ in range(KEPT)}

    assert statuses == {200}
    assert client.sock is socket


@pytest.mark.parametrize("path", ["/alpha/mcp", "/metrics", "/"])
def test_a_host_that_is_not_ours_is_refused_by_the_replica(
    client: http.client.HTTPConnection, path: str
) -> None:
    client.request("GET", path, headers={"Host": "evil.example", "Accept": "text/html"})
    response = client.getresponse()
    body = response.read()

    assert response.status == 421
    assert b"BRIDGEHEAD_ALLOWED_HOSTS" in body or b"Host" in body


def test_events_come_as_they_happen_and_a_stream_stays_open(client: http.client.HTTPConnection) -> None:
    listen = stateless("subscriptions/listen", {"notifications": {"resourcesListChanged": True}})
    response = send(client, listen)

    first = response.readline()

    assert (response.status, response.headers["content-type"]) == (200, "text/event-stream")
    assert first  # before the stream has ended, which it does not by itself
    assert not response.isclosed()


def test_a_call_that_takes_a_while_and_the_health_page_come_through(
    client: http.client.HTTPConnection,
) -> None:
    slow = post(client, "alpha_soon")
    client.request("GET", "/readyz")
    health = client.getresponse()

    assert (slow, health.status) == (200, 200)
    assert b'"status":"ready"' in health.read()


@pytest.mark.parametrize("name", list(FILES))
def test_a_restart_does_not_wait_for_an_open_stream(
    name: str, replicas: tuple[Command, Command], tmp_path: Path
) -> None:
    program = need_program(name)
    with balancing(name, program, tmp_path, (replicas[0].port, replicas[1].port)) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        while post(connection) != 200:  # it listens before it knows the replicas
            time.sleep(0.05)
        listen = stateless("subscriptions/listen", {"notifications": {"resourcesListChanged": True}})
        stream = send(connection, listen)
        assert stream.readline()

    connection.close()  # only now: `balancing` has told the balancer to end, and waited until it had


class Callers:
    """Clients that call again and again, each time on new connections, until told to end."""

    def __init__(self, port: int, count: int) -> None:
        self.statuses: list[int] = []
        self._port = port
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._call) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def _call(self) -> None:
        while not self._is_over.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
            try:
                self.statuses.extend(post(connection) for _ in range(20))
            except (OSError, http.client.HTTPException):
                self.statuses.append(0)
            connection.close()

    def wait_for_more(self, count: int = 100) -> None:
        before, limit = len(self.statuses), time.monotonic() + PATIENCE
        while len(self.statuses) < before + count:
            assert time.monotonic() < limit
            time.sleep(0.01)

    def end(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()


# It takes 13 s of CPU time, so `make test` leaves it to `make deploy`.
@pytest.mark.skipif("BRIDGEHEAD_DEPLOY" not in os.environ, reason="run make deploy")
def test_a_rolling_restart_fails_no_call(tmp_path: Path) -> None:
    program = need_program("haproxy")
    ports = (free_port(), free_port())
    settings = {"BRIDGEHEAD_DRAIN_SECONDS": "4"}

    def start(stack: ExitStack, port: int) -> Command:
        arguments = ("--bridges", "alpha", "--port", str(port))
        return stack.enter_context(serving(tmp_path / f"{port}", *arguments, settings=settings))

    with ExitStack() as stack:
        replicas = [start(stack, port) for port in ports]
        front = stack.enter_context(balancing("haproxy", program, tmp_path, ports))
        callers = Callers(front, 4)
        stack.callback(callers.end)
        for replica, port in zip(replicas, ports, strict=True):
            callers.wait_for_more()
            assert replica.end() == 0
            start(stack, port)
        callers.wait_for_more()
        callers.end()

    assert set(callers.statuses) == {200}
