"""Workers: several processes behind one port look like one, whoever of them a request comes to."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from tests.host.conftest import Dial
from tests.host.telemetry.test_metrics import samples
from tests.host.test_command import called, post
from tests.support.host_command import PATIENCE, Command, add_token, serving
from tests.support.host_server import bearer
from tests.support.http_client import Headers
from tests.support.http_server import JSON_POST
from tests.support.messages import HANDSHAKE, call, encode, initialize, notification, request, text
from tests.support.stdio_peer import ROOT

COUNT = 3


@contextmanager
def herd(folder: Path, **settings: str) -> Iterator[Command]:
    arguments = ("--bridges", "alpha,beta", "--workers", str(COUNT))
    with serving(folder, *arguments, workers=COUNT, cwd=ROOT, settings=settings) as host:
        yield host


async def test_a_session_is_the_same_on_every_connection(tmp_path: Path, dial: Dial) -> None:
    token = bearer(add_token(tmp_path, "alice"))
    with herd(tmp_path, BRIDGEHEAD_AUTH="on") as host:
        http = dial(host.port)
        for _ in range(4):
            hello = await post(http, initialize(), token)
            assert (await hello.json())["result"]["protocolVersion"] == HANDSHAKE
            session: Headers = {
                **token,
                "Mcp-Session-Id": hello.headers["mcp-session-id"],
                "MCP-Protocol-Version": HANDSHAKE,
            }
            await post(http, notification("notifications/initialized"), session)
            for _ in range(6):  # each on a connection of its own, and so to any of the workers
                answer = await post(http, request("tools/call", call("alpha_later", {"text": "hi"})), session)
                assert text(await answer.json()) == "hi"
            without = {**session, "Authorization": None}
            assert (await post(http, request("tools/list"), without)).status == 401
            assert (await http.request("DELETE", "/mcp", session)).status == 204
            assert (await post(http, request("tools/list"), session)).status == 404


async def test_a_stream_of_a_session_is_passed_on_as_it_comes(tmp_path: Path, dial: Dial) -> None:
    with herd(tmp_path, BRIDGEHEAD_DRAIN_SECONDS="1") as host:  # a call is still waiting at its end
        http = dial(host.port)
        hello = await post(http, initialize())
        session: Headers = {
            "Mcp-Session-Id": hello.headers["mcp-session-id"],
            "MCP-Protocol-Version": HANDSHAKE,
        }
        await post(http, request("resources/subscribe", {"uri": "alpha://note"}), session)
        accept: Headers = {"Accept": "text/event-stream"}
        streams = [await http.request("GET", headers={**session, **accept}) for _ in range(5)]
        writing = request("tools/call", call("alpha_write", {"text": "x"}))
        assert text(await (await post(http, writing, session)).json()) == "wrote x"

        assert (await streams[-1].message())["params"] == {"uri": "alpha://note"}
        waiting = await post(http, request("tools/call", call("alpha_wait", progress="p")), session)
        assert (await waiting.message())["method"] == "notifications/progress"
        await waiting.hang_up()


async def test_clients_of_the_first_revision_reach_their_stream(tmp_path: Path, dial: Dial) -> None:
    with herd(tmp_path) as host:
        http = dial(host.port)
        stream = await http.request("GET", "/sse", {"Accept": "text/event-stream"})
        first = await stream.event()
        assert first is not None
        for number in range(5):
            ping = {"jsonrpc": "2.0", "id": number, "method": "ping"}
            posted = await post(http, ping, path=first.fields["data"])
            assert posted.status == 202
            assert (await stream.message())["id"] == number


async def test_a_body_that_comes_slowly_is_passed_on_too(tmp_path: Path, dial: Dial) -> None:
    token = bearer(add_token(tmp_path, "alice"))
    settings = {"BRIDGEHEAD_AUTH": "on", "BRIDGEHEAD_BODY_LIMIT": "300kb"}
    with herd(tmp_path, **settings, **{"bridgehead.host.factory:BODY_SECONDS": "0.5"}) as host:
        http = dial(host.port)
        hello = await post(http, initialize(), token)
        session: Headers = {
            "Mcp-Session-Id": hello.headers["mcp-session-id"],
            "MCP-Protocol-Version": HANDSHAKE,
        }
        message = encode(request("tools/call", call("alpha_echo", {"text": "x" * 100_000})))
        statuses = []
        for _ in range(6):  # each on a connection of its own, and so to any of the workers
            for shown, sent, length in (
                (token, message, len(message)),
                ({}, message, len(message)),
                (token, message[:-1], len(message)),
                (token, message * 4, len(message) * 4),
            ):
                headers = {**JSON_POST, **session, **shown, "Content-Length": str(length)}
                response, writer = await http.begin(http.head("POST", "/mcp", headers) + sent[:50_000])
                writer.write(sent[50_000:])
                await response.begin()
                statuses.append(response.status)
        host.wait_for("request rejected", 12)  # a line comes after its answer
        reasons = [line["reason"] for line in host.lines if "reason" in line]

    assert statuses == [200, 401, 408, 413] * 6
    assert sorted(reasons) == sorted(["token_missing", "slow_body", "body_size"] * 6)


async def test_metrics_are_those_of_all_workers(tmp_path: Path, dial: Dial) -> None:
    with herd(tmp_path) as host:
        http = dial(host.port)
        for _ in range(20):
            await called(http, "alpha_echo")
        found = samples((await (await http.request("GET", "/metrics")).body()).decode())

    calls = [value for key, value in found.items() if key.startswith("tool_calls_total")]
    up = [key for key in found if key.startswith("bridgehead_bridge_up") and 'bridge="beta"' in key]
    assert sum(calls) == 20
    assert len(up) == COUNT


async def test_a_worker_that_dies_is_replaced_and_its_sessions_begin_again(
    tmp_path: Path, dial: Dial
) -> None:
    with herd(tmp_path) as host:
        http = dial(host.port)
        pids = {line["worker"]: line["pid"] for line in host.lines if line["event"] == "a worker was started"}
        hello = await post(http, initialize())
        session_id = hello.headers["mcp-session-id"]
        session: Headers = {"Mcp-Session-Id": session_id, "MCP-Protocol-Version": HANDSHAKE}

        os.kill(pids[int(session_id.partition("~")[0].rpartition(".")[2])], signal.SIGKILL)
        await asyncio.to_thread(host.wait_for, "serving")

        for _ in range(6):
            answer = await post(http, request("tools/list"), session)
            assert answer.status == 404
            assert text(await called(http, "alpha_echo")) == "hi"
        assert any(line["event"] == "a worker died" for line in host.lines)


async def test_an_id_of_no_session_is_answered_as_such(tmp_path: Path, dial: Dial) -> None:
    unknown = ["9~x", "x~y", "~", "00000~x", "1~", "0~unknown", "no mark at all"]
    with herd(tmp_path) as host:
        http = dial(host.port)
        headers: list[Headers] = [
            {"Mcp-Session-Id": id_, "MCP-Protocol-Version": HANDSHAKE} for id_ in unknown
        ]
        statuses = [(await post(http, request("tools/list"), one)).status for one in headers]

    assert dict(zip(unknown, statuses, strict=True)) == dict.fromkeys(unknown, 404)


async def test_all_workers_end_with_their_parent(tmp_path: Path) -> None:
    with herd(tmp_path) as host:
        pids = [line["pid"] for line in host.lines if line["event"] == "a worker was started"]
        assert await asyncio.to_thread(host.end) == 0

    async with asyncio.timeout(PATIENCE):
        for pid in pids:
            while _is_alive(pid):
                await asyncio.sleep(0.01)
    assert sum(line["event"] == "ended" for line in host.lines) == COUNT


async def test_each_worker_is_restarted_on_its_own_clock(tmp_path: Path) -> None:
    with herd(tmp_path) as host:
        for _ in range(3):
            pids = latest_pids(host)
            for index in (0, 1):
                os.kill(pids[index], signal.SIGKILL)
            await asyncio.to_thread(host.wait_for, "serving", 2)

    died = [index for index, line in enumerate(host.lines) if line["event"] == "a worker died"]
    started = [index for index, line in enumerate(host.lines) if line["event"] == "a worker was started"]
    assert len(died) == 6
    times = [
        datetime.fromisoformat(host.lines[second]["time"]) - datetime.fromisoformat(host.lines[first]["time"])
        for first, second in zip(died[-2:], started[-2:], strict=True)
    ]
    assert max(times).total_seconds() < 12, "a pause of 4 s each, and not one after the other"


async def test_a_worker_that_stands_still_is_replaced(tmp_path: Path, dial: Dial) -> None:
    with herd(tmp_path, **{"bridgehead.host.workers.supervision:STALLED_SECONDS": "2"}) as host:
        stopped = latest_pids(host)[0]
        os.kill(stopped, signal.SIGSTOP)
        line = await asyncio.to_thread(host.wait_for, "a worker is blocked")
        await asyncio.to_thread(host.wait_for, "serving")
        assert text(await called(dial(host.port), "alpha_echo")) == "hi"

    assert line["pid"] == stopped


async def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    with herd(tmp_path) as host:
        pids = latest_pids(host).values()
        host.process.kill()
        async with asyncio.timeout(PATIENCE):
            for pid in pids:
                while _is_alive(pid):
                    await asyncio.sleep(0.01)


@pytest.mark.parametrize("workers", [1, 2])
async def test_no_signal_ends_it_midway(tmp_path: Path, dial: Dial, workers: int) -> None:
    arguments = ("--bridges", "alpha", "--workers", str(workers))
    with serving(tmp_path, *arguments, workers=workers, cwd=ROOT) as host:
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
            host.process.send_signal(number)
        assert text(await called(dial(host.port), "alpha_echo")) == "hi"
        host.process.send_signal(signal.SIGQUIT)
        assert await asyncio.to_thread(host.process.wait, PATIENCE) == 0

    assert sum(line["event"] == "ended" for line in host.lines) == workers


def latest_pids(host: Command) -> dict[int, int]:
    """The process of each worker that was started last."""
    return {line["worker"]: line["pid"] for line in host.lines if line["event"] == "a worker was started"}


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
