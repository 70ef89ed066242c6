"""Hang-ups: many clients that go in the middle of things leave nothing running."""

import asyncio
import gc
import random

import pytest

from bridgehead.mcp import Limits
from tests.support.http_client import Headers, Response
from tests.support.http_server import Server, serving
from tests.support.messages import call, request, stateless, text
from tests.support.waiting import PATIENCE

CLIENTS = 200


async def quiet(server: Server, tasks: int) -> None:
    """Wait until no handler runs and no more tasks than at the start are there."""
    async with asyncio.timeout(PATIENCE):
        await server.work.idle.wait()
        while len(asyncio.all_tasks()) > tasks:
            await asyncio.sleep(0.02)
    gc.collect()


async def hang_up_all(responses: list[Response]) -> None:
    random.Random(7).shuffle(responses)  # noqa: S311  (the same order each time)
    await asyncio.gather(*(response.hang_up() for response in responses))


@pytest.mark.parametrize("era", ["stateless", "handshake", "listening", "get", "legacy"])
async def test_two_hundred_clients_that_hang_up_leave_nothing_running(era: str) -> None:
    async with serving(Limits(resume_seconds=0.1)) as server:
        session = await server.session()
        tasks = len(asyncio.all_tasks())
        responses = await asyncio.gather(*(opened(server, era, session, n) for n in range(CLIENTS)))
        assert len(asyncio.all_tasks()) > tasks
        await hang_up_all(list(responses))
        await quiet(server, tasks)
        assert server.work.running == 0
        assert server.work.cancelled == (CLIENTS if era in ("stateless", "handshake") else 0)
        assert not server.app.dispatcher.streams
        response = await server.post(request("tools/call", call("echo", {"text": "still here"})), session)
        assert text(await server.json(response)) == "still here"


async def opened(server: Server, era: str, session: Headers, number: int) -> Response:
    """Open something that lasts, and read its beginning."""
    waiting = call("wait", progress=number)
    if era == "stateless":
        response = await server.stateless(stateless("tools/call", waiting, number))
    elif era == "handshake":
        response = await server.post(request("tools/call", waiting, number), session)
    elif era == "listening":
        response = await server.stateless(stateless("subscriptions/listen", {"notifications": {}}, number))
    elif era == "legacy":
        response = await server.http.request("GET", "/sse")
    else:
        return await server.listen(await server.session())
    assert await response.event() is not None
    return response


async def test_a_thousand_calls_in_all_orders_are_answered_while_others_hang_up(server: Server) -> None:
    dice = random.Random(2026)  # noqa: S311  (the same order each time)
    tasks = len(asyncio.all_tasks())

    async def one(number: int) -> str | None:
        if dice.random() < 0.3:
            response = await server.stateless(stateless("tools/call", call("wait", progress=number), number))
            await response.message()
            await response.hang_up()
            return None
        asked = stateless("tools/call", call("echo", {"text": str(number)}), number)
        response = await server.stateless(asked)
        answer = text(await server.json(response))
        await response.hang_up()
        return answer

    answers: list[str | None] = []
    for start in range(0, 1000, 50):
        answers += await asyncio.gather(*(one(number) for number in range(start, start + 50)))
    assert all(answer in (None, str(number)) for number, answer in enumerate(answers))
    assert 500 < sum(answer is not None for answer in answers) < 900
    await quiet(server, tasks)
    assert server.work.running == 0
