"""Callers: one of them cannot take what is there for all."""

import asyncio

from bridgehead.mcp import Limits
from tests.mcp.http.test_sessions import by_header
from tests.support.http_client import Headers
from tests.support.http_server import Server, serving
from tests.support.messages import call, initialize, request, stateless, text
from tests.support.waiting import PATIENCE

LIMITS = Limits(sessions_per_caller=2, streams_per_caller=2, http_requests_per_caller=2)
ADA: Headers = {"X-Caller": "ada"}
EVE: Headers = {"X-Caller": "eve"}


async def test_a_caller_has_only_so_many_sessions_and_others_still_get_theirs() -> None:
    async with serving(LIMITS, settings={"wrap": by_header}) as server:
        first = await server.post(initialize(), EVE)
        session: Headers = {**EVE, "Mcp-Session-Id": first.headers["mcp-session-id"]}
        await (await server.post(initialize(), EVE)).body()
        third = await server.post(initialize(), EVE)
        assert "2 sessions" in await server.refused(third, 429)
        assert third.headers["retry-after"] == "30"
        assert (await server.post(initialize(), ADA)).status == 200

        assert (await server.http.request("DELETE", headers=session)).status == 204
        assert (await server.post(initialize(), EVE)).status == 200


async def open_stream(server: Server, kind: str, who: Headers) -> int:
    """Open a stream of a kind, and return its status."""
    if kind == "get":
        hello = await server.post(initialize(), who)
        return (await server.listen({**who, "Mcp-Session-Id": hello.headers["mcp-session-id"]})).status
    if kind == "sse":
        return (await server.http.request("GET", "/sse", who)).status
    listening = stateless("subscriptions/listen", {"notifications": {}}, 1)
    return (await server.stateless(listening, who)).status


async def test_streams_of_all_kinds_are_counted_together() -> None:
    async with serving(LIMITS, settings={"wrap": by_header}) as server:
        assert await open_stream(server, "sse", EVE) == 200
        assert await open_stream(server, "listen", EVE) == 200
        for kind in ("sse", "listen", "get"):
            assert await open_stream(server, kind, EVE) == 429
        for kind in ("listen", "get"):
            assert await open_stream(server, kind, ADA) == 200


async def test_a_caller_has_only_so_many_requests_in_flight() -> None:
    async with serving(LIMITS, settings={"wrap": by_header}) as server:
        waiting = [
            await server.stateless(stateless("tools/call", call("wait", progress=1), number), EVE)
            for number in range(2)
        ]
        for response in waiting:
            await response.message()
        echo = stateless("tools/call", call("echo", {"text": "me too"}), 9)
        assert "2 requests" in await server.refused(await server.stateless(echo, EVE), 429)
        assert text(await server.json(await server.stateless(echo, ADA))) == "me too"
        await waiting[0].hang_up()
        async with asyncio.timeout(PATIENCE):
            while (await server.stateless(echo, EVE)).status != 200:
                await asyncio.sleep(0.01)


async def test_without_a_principal_an_address_is_the_caller() -> None:
    async with serving(LIMITS) as server:
        for _ in range(2):
            assert (await server.post(initialize())).status == 200
        assert (await server.post(initialize())).status == 429
        answer = await server.stateless(stateless("tools/call", call("echo", {"text": "stateless"}), 1))
        assert text(await server.json(answer)) == "stateless"
        assert (await server.post(request("ping"))).status == 400
