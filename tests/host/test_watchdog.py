"""Watchdog: who keeps the event loop is named, and who works in a thread keeps it from nobody."""

import threading
from pathlib import Path

import pytest

from bridgehead.host.watchdog import Watchdog
from tests.host.conftest import Dial
from tests.host.telemetry.test_metrics import samples
from tests.host.test_command import post
from tests.support.host_command import serving
from tests.support.http_server import mirrored
from tests.support.messages import call, stateless, text

BLOCKED_SECONDS = "bridgehead.host.watchdog:BLOCKED_SECONDS"


async def test_a_tool_that_blocks_is_named_with_its_line_and_counted(tmp_path: Path, dial: Dial) -> None:
    with serving(tmp_path, "--bridges", "slow", settings={BLOCKED_SECONDS: "0.2"}) as host:
        http = dial(host.port)
        asked = stateless("tools/call", call("slow_block", {"text": "1.5"}))
        assert text(await (await post(http, asked, mirrored(asked))).json()) == "blocked"
        line = host.wait_for("the event loop is blocked")
        host.wait_for("the event loop is running again")
        metrics = samples((await (await http.request("GET", "/metrics")).body()).decode())

    assert line["tool"] == "slow_block"
    assert "host_bridges.py:" in line["line"]
    assert metrics['bridgehead_loop_blocked_total{tool="slow_block"}'] >= 1


async def test_a_tool_in_a_thread_keeps_the_loop_from_nobody(tmp_path: Path, dial: Dial) -> None:
    with serving(tmp_path, "--bridges", "slow", settings={BLOCKED_SECONDS: "0.5"}) as host:
        http = dial(host.port)
        asked = stateless("tools/call", call("slow_work", {"text": "2"}))
        answer = text(await (await post(http, asked, mirrored(asked))).json())
        host.end()

    assert answer.startswith("worked in ")
    assert "MainThread" not in answer
    assert not [line for line in host.lines if line["event"] == "the event loop is blocked"]


async def test_without_room_for_another_thread_the_loop_is_not_watched_and_the_host_serves(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    watchdog = Watchdog(lambda _tool: None)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with caplog.at_level("WARNING", "bridgehead"):
        watchdog.start()

    assert [record.getMessage() for record in caplog.records] == ["the event loop is not watched"]
