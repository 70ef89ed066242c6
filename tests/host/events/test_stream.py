"""Stream: what happens, read by operators; bounded, and only with the right to."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bridgehead.host.events import stream as module
from bridgehead.runtime import events
from tests.host.telemetry.test_metrics import scraped
from tests.support.host_server import Host, bearer, hosting
from tests.support.http_client import Response
from tests.support.waiting import PATIENCE


async def next_event(response: Response) -> tuple[str, Any]:
    """Read the next event of a stream, past the comments."""
    async with asyncio.timeout(PATIENCE):
        while True:
            event = await response.event()
            assert event is not None, "the stream ended"
            if "data" in event.fields:
                return event.fields["event"], msgspec.json.decode(event.fields["data"])


async def opened(host: Host, query: str = "", token: str = "") -> Response:
    response = await host.get(f"/events{query}", bearer(token) if token else None)
    assert response.status == 200, await response.body()
    beginning = await response.event()
    assert beginning is not None
    assert beginning.is_comment
    return response


async def test_every_reader_sees_what_happens(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        one, other = await opened(host), await opened(host, "?types=call.failed")
        await host.try_call("/mcp", "alpha_echo")
        await host.try_call("/mcp", "alpha_bug")
        first, second = await next_event(one), await next_event(one)
        assert (await next_event(other))[1]["data"]["tool"] == "alpha_bug"
        found = await scraped(host)

    assert [kind for kind, _ in (first, second)] == ["call.ended", "call.failed"]
    assert first[1]["data"]["tool"] == "alpha_echo"
    assert "hello" not in str(first)
    assert found["bridgehead_event_readers"] == 2


async def test_only_a_token_for_events_opens_them(tmp_path: Path) -> None:
    tokens = {"alice": {}, "operator": {"events": True, "bridges": ("none",)}}
    async with hosting(tmp_path, tokens=tokens) as host:
        assert (await host.get("/events")).status == 401
        refused = await host.get("/events", bearer(host.secrets["alice"]))
        assert "does not open events" in await host.refused(refused, 403)
        stream = await opened(host, token=host.secrets["operator"])
        await host.try_call("/mcp", "alpha_echo", bearer(host.secrets["alice"]))
        assert (await next_event(stream))[1]["data"]["client"] == "alice"


async def test_there_is_room_for_some_readers_and_a_place_comes_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_READERS", 1)
    async with hosting(tmp_path) as host:
        first = await opened(host)
        assert "operators read the events already" in await host.refused(await host.get("/events"), 429)
        await first.hang_up()
        for _ in range(3):  # a HEAD has no body, so it takes nobody's place
            head = await host.http.request("HEAD", "/events", {"Content-Length": None})
            assert (head.status, head.headers["content-type"]) == (200, "text/event-stream")
            await head.hang_up()
        async with asyncio.timeout(PATIENCE):
            while (await scraped(host))["bridgehead_event_readers"]:
                await asyncio.sleep(0.01)
        await opened(host)
    assert not events.feed.has_call_listeners


async def test_a_reader_that_is_too_slow_is_told_what_it_missed(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        response = await opened(host)
        for number in range(1500):  # in one turn of the loop, in which nobody can read
            events.publish("test.happened", number=number)
        kind, data = await next_event(response)
        assert (kind, data) == ("dropped", {"events": 500})
        assert (await next_event(response))[1]["data"]["number"] == 500


async def test_streams_end_with_the_host(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        response = await opened(host)
        host.app.end_streams()
        async with asyncio.timeout(PATIENCE):
            assert b"data" not in await response.body()
