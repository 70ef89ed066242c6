"""`bridgehead serve` as a process: what it refuses to start with, how it serves, and how it ends."""

import asyncio
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bridgehead.host.command import open_listener
from bridgehead.host.settings import HostSettings
from bridgehead.runtime.errors import BridgeError
from tests.host.conftest import Dial
from tests.support.host_command import PATIENCE, add_token, environment, run, serving
from tests.support.host_server import bearer
from tests.support.http_client import Headers, HttpClient, Response
from tests.support.http_server import JSON_POST, mirrored
from tests.support.messages import Json, call, encode, initialize, stateless, text
from tests.support.ports import free_port
from tests.support.stdio_peer import ROOT
from tests.support.tcp import reset_when_closed
from tests.support.waiting import until

NOWHERE = str(Path("/nowhere.pem").absolute())
RESETS = 200
"""So many that some come before they are accepted."""


async def post(
    http: HttpClient, message: Json, headers: Headers | None = None, path: str = "/mcp"
) -> Response:
    """POST one message."""
    return await http.request("POST", path, {**JSON_POST, **(headers or {})}, encode(message))


async def called(http: HttpClient, tool: str, headers: Headers | None = None) -> Json:
    """Call a tool with a text, and return the answer."""
    message = stateless("tools/call", call(tool, {"text": "hi"}))
    answer: Json = await (await post(http, message, {**mirrored(message), **(headers or {})})).json()
    return answer


async def test_with_a_token_it_starts_and_asks_for_it(tmp_path: Path, dial: Dial) -> None:
    token = add_token(tmp_path, "alice")
    with serving(tmp_path, "--host", "0.0.0.0") as host:  # noqa: S104 - the same
        http = dial(host.port)
        assert (await post(http, initialize())).status == 401
        assert text(await called(http, "alpha_echo", bearer(token))) == "hi"


def test_on_loopback_the_log_says_that_tokens_are_not_enforced_and_how_to_require_them(
    tmp_path: Path,
) -> None:
    add_token(tmp_path, "alice")
    with serving(tmp_path) as open_host, serving(tmp_path, BRIDGEHEAD_AUTH="on") as strict_host:
        pass

    (line,) = [line for line in open_host.lines if "not enforced" in line["event"]]
    assert (line["level"], line["tokens"], line["address"]) == ("warn", 1, "localhost")
    assert line["next_step"] == "set BRIDGEHEAD_AUTH=on to require them"
    assert [line for line in strict_host.lines if "not enforced" in line["event"]] == []


async def test_clients_that_reset_their_connections_do_not_close_the_port(tmp_path: Path, dial: Dial) -> None:
    with serving(tmp_path) as host:
        for _ in range(RESETS):
            with socket.create_connection(("127.0.0.1", host.port)) as client:
                reset_when_closed(client)
        assert text(await called(dial(host.port), "alpha_echo")) == "hi"


@pytest.mark.parametrize(
    ("arguments", "settings", "told"),
    [
        (("--port", "http"), {}, "--port is 'http': expected a whole number from 0 to 65535."),
        (("--host", ""), {}, "--host is '': expected a name or an IP address"),
        ((), {"MCP_SERVER_PORT": "http"}, "MCP_SERVER_PORT is 'http'"),
        (("--tls-cert", NOWHERE), {}, f"BRIDGEHEAD_TLS_CERT is '{NOWHERE}'"),
        ((), {"BRIDGEHEAD_AUTH": "off", "MCP_SERVER_HOST": "192.0.2.1"}, "BRIDGEHEAD_AUTH is 'off'"),
        ((), {"BRIDGEHEAD_AUTH": "on"}, "need a token, and there is none"),
        (("--colour",), {}, "unrecognized arguments: --colour. Usage: bridgehead serve"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(
    tmp_path: Path, arguments: tuple[str, ...], settings: dict[str, str], told: str
) -> None:
    done = run(tmp_path, *arguments, **settings)

    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_bridge_of_which_there_is_one_does_not_share_its_port(tmp_path: Path) -> None:
    shared = {"BRIDGEHEAD_REDIS_URL": "redis://127.0.0.1:1", "BRIDGEHEAD_STATE_KEYS": "k" * 32}
    done = run(tmp_path, BRIDGEHEAD_REUSE_PORT="1", **shared)

    assert done.returncode == 2
    assert "gamma cannot share its port between processes: There is one gamma in the world." in done.stderr
    assert "bridgehead serve alpha beta" in done.stderr


@pytest.mark.parametrize(("arguments", "set_"), [(("--workers", "2"), {}), ((), {"BRIDGEHEAD_WORKERS": "4"})])
def test_who_asks_for_workers_is_told_of_replicas(
    tmp_path: Path, arguments: tuple[str, ...], set_: dict[str, str]
) -> None:
    done = run(tmp_path, *arguments, **set_)

    assert done.returncode == 2
    assert (
        "--workers and BRIDGEHEAD_WORKERS are gone. To use several cores, run several replicas" in done.stderr
    )


def test_a_port_is_not_shared_where_the_system_cannot_share_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "SO_REUSEPORT", raising=False)  # as on Windows
    shared = {"BRIDGEHEAD_REDIS_URL": "redis://127.0.0.1:1", "BRIDGEHEAD_STATE_KEYS": "k" * 32}
    settings = HostSettings({"BRIDGEHEAD_REUSE_PORT": "1", "MCP_SERVER_PORT": "0", **shared})

    with pytest.raises(BridgeError, match=r"cannot share a port between processes\. Unset"):
        open_listener(settings, {})


def test_a_port_that_is_taken_is_said_to_be(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run(tmp_path, "--port", str(port))

    assert done.returncode == 2
    assert f"Cannot listen on localhost:{port}: " in done.stderr
    assert "stop what uses this one" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_at_a_signal_answers_and_streams_are_finished_and_the_status_is_0(
    tmp_path: Path, dial: Dial, number: int
) -> None:
    with serving(tmp_path, BRIDGEHEAD_SHUTDOWN_SECONDS="3") as host:
        http = dial(host.port)
        listen = stateless("subscriptions/listen", {"notifications": {"resourcesListChanged": True}})
        stream = await post(http, listen, mirrored(listen))
        await stream.message()
        message = stateless("tools/call", call("alpha_soon", {"text": "late"}))
        answering = asyncio.ensure_future(post(http, message, mirrored(message)))
        await asyncio.to_thread(host.wait_for, "alpha_soon has begun")

        status = await asyncio.to_thread(host.end, number)

        assert status == 0
        assert text(await (await answering).json()) == "late"
        assert (await stream.messages())[-1]["result"]["resultType"] == "complete"
        assert host.lines[-1]["event"] == "ended"


async def test_what_hangs_at_the_end_is_abandoned_within_the_limit(tmp_path: Path, dial: Dial) -> None:
    with serving(tmp_path, BRIDGEHEAD_SHUTDOWN_SECONDS="0.3") as host:
        http = dial(host.port)
        message = stateless("tools/call", call("alpha_wait", progress="p"))
        stream = await post(http, message, mirrored(message))
        await stream.message()

        assert await asyncio.to_thread(host.end) == 0


def test_two_log_levels_that_differ_are_said_so(tmp_path: Path) -> None:
    with serving(tmp_path, LOG_LEVEL="info", MCP_LOG_LEVEL="debug") as host:
        pass
    assert host.lines[0]["event"] == "LOG_LEVEL and MCP_LOG_LEVEL differ; LOG_LEVEL counts"
    assert (host.lines[0]["LOG_LEVEL"], host.lines[0]["MCP_LOG_LEVEL"]) == ("info", "debug")


async def test_bridges_are_chosen_by_name(tmp_path: Path, dial: Dial) -> None:
    with serving(tmp_path, "--bridges", "beta") as host:
        http = dial(host.port)
        assert text(await called(http, "beta_echo")) == "hi"
        assert (await http.request("GET", "/readyz/alpha")).status == 404


def is_listening(port: int) -> bool:
    """Tell whether somebody accepts connections there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("closed", ["1", "2"])
async def test_it_serves_although_a_standard_stream_is_closed(
    tmp_path: Path, dial: Dial, closed: str
) -> None:
    port = free_port()
    words = [sys.executable, "-m", "bridgehead", "serve", "aoc", "--port", str(port)]
    process = subprocess.Popen(
        ["sh", "-c", f'exec "$@" {closed}>&-', "sh", *words],
        cwd=ROOT,
        env=environment(tmp_path, AOC_DATA_DIR=str(tmp_path)),
        stderr=subprocess.DEVNULL,
    )
    try:
        await until(lambda: process.poll() is not None or is_listening(port))
        assert (await dial(port).request("GET", "/healthz", {"Content-Length": None})).status == 200
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0
