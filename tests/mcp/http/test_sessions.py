"""Sessions: how a client of the handshake era gets one, keeps it, and loses it."""

import asyncio

import pytest

from bridgehead.mcp import Limits
from bridgehead.mcp.http import Application
from bridgehead.mcp.http.message import AnyResponse, Handler, Request
from tests.support.http_client import Headers
from tests.support.http_server import Server, serving
from tests.support.messages import call, initialize, notification, request, text
from tests.support.waiting import PATIENCE


async def test_initialize_opens_a_session_whose_id_is_visible_ascii(server: Server) -> None:
    response = await server.post(initialize())
    assert (await server.json(response))["result"]["protocolVersion"] == "2025-11-25"
    session_id = response.headers["mcp-session-id"]
    assert len(session_id) >= 24
    assert all("!" <= character <= "~" for character in session_id)
    other = await server.post(initialize())
    assert other.headers["mcp-session-id"] != session_id


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_revision_of_the_handshake_era_works_in_a_session(server: Server, version: str) -> None:
    session = await server.session(version)
    response = await server.post(request("tools/call", call("echo", {"text": "a"})), session)
    assert text(await server.json(response)) == "a"


async def test_a_request_without_a_session_is_a_bad_request(server: Server) -> None:
    for message in (request("ping"), notification("notifications/initialized")):
        assert "Mcp-Session-Id" in await server.refused(await server.post(message), 400)
    probed = await server.listen({})  # as clients do that only want to know whether there is a stream
    assert "without a session" in await server.refused(probed, 405)
    assert probed.headers["allow"] == "POST"
    assert "Mcp-Session-Id" in await server.refused(await server.http.request("DELETE"), 400)


@pytest.mark.parametrize("session_id", ["unheard-of", "", "ä", "x" * 5000])
async def test_an_unknown_session_is_not_found(server: Server, session_id: str) -> None:
    session: Headers = {"Mcp-Session-Id": session_id}
    assert "initialize" in await server.refused(await server.post(request("ping"), session), 404)
    assert "initialize" in await server.refused(await server.listen(session), 404)


async def test_a_deleted_session_is_gone_with_its_streams_and_calls(server: Server) -> None:
    session = await server.session()
    stream = await server.listen(session)
    running = await server.post(request("tools/call", call("wait", progress=1), 1), session)
    assert (await running.message())["method"] == "notifications/progress"
    response = await server.http.request("DELETE", headers=session)
    assert (response.status, await response.body()) == (204, b"")
    assert await stream.messages() == []
    assert await running.messages() == []
    assert server.work.cancelled == 1
    await server.refused(await server.post(request("ping"), session), 404)
    await server.refused(await server.http.request("DELETE", headers=session), 404)


async def test_a_new_session_at_the_limit_replaces_the_idlest() -> None:
    async with serving(Limits(sessions=2)) as server:
        idlest = await server.session()
        kept = await server.session()
        newest = await server.session()

        await server.refused(await server.post(request("ping"), idlest), 404)
        for session in (kept, newest):
            assert (await server.json(await server.post(request("ping"), session)))["result"] == {}
        assert len(server.app.endpoint.sessions) == 2


async def test_a_newcomer_gets_a_session_at_the_expense_of_who_has_the_most() -> None:
    async with serving(Limits(sessions=4), settings={"wrap": by_header}) as server:

        async def open_session(caller: str) -> Headers:
            response = await server.post(initialize(), {"X-Caller": caller})
            await response.body()
            return {"Mcp-Session-Id": response.headers["mcp-session-id"], "X-Caller": caller}

        of_one = await open_session("ada")
        of_many = [await open_session("eve") for _ in range(3)]
        streams = [await server.listen(session) for session in of_many]  # all of them in use
        newcomer = await open_session("bob")

        assert await streams[0].messages() == []  # its session was closed
        await server.refused(await server.post(request("ping"), of_many[0]), 404)
        for session in (of_one, newcomer, *of_many[1:]):
            assert (await server.post(request("ping"), session)).status == 200
        assert server.app.accounts.sessions.by_caller == {"ada": 1, "eve": 2, "bob": 1}


async def test_equals_do_not_take_each_others_sessions_while_these_are_in_use() -> None:
    async with serving(Limits(sessions=2), settings={"wrap": by_header}) as server:
        for caller in ("ada", "eve"):
            response = await server.post(initialize(), {"X-Caller": caller})
            await response.body()
            session: Headers = {"Mcp-Session-Id": response.headers["mcp-session-id"], "X-Caller": caller}
            assert (await server.listen(session)).status == 200

        refused = await server.post(initialize(), {"X-Caller": "bob"})
        assert refused.headers["retry-after"] == "30"
        await server.refused(refused, 503)


async def test_an_initialize_that_fails_leaves_no_session(server: Server) -> None:
    response = await server.post(request("initialize", {"protocolVersion": 7}))
    answer = await server.json(response)
    assert answer["error"]["code"] == -32602
    assert "mcp-session-id" not in response.headers
    assert len(server.app.endpoint.sessions) == 0


async def test_an_idle_session_is_forgotten_and_one_in_use_is_not() -> None:
    async with serving(Limits(session_idle_seconds=1.5)) as server:
        idle = await server.session()
        used = await server.session()
        stream = await server.listen(used)
        async with asyncio.timeout(PATIENCE):
            while len(server.app.endpoint.sessions) > 1:
                await asyncio.sleep(0.05)
        await server.refused(await server.post(request("ping"), idle), 404)
        assert (await server.json(await server.post(request("ping"), used)))["result"] == {}
        await stream.hang_up()
        async with asyncio.timeout(PATIENCE):
            while len(server.app.endpoint.sessions):
                await asyncio.sleep(0.05)


async def test_the_session_of_another_principal_does_not_exist() -> None:
    async with serving(settings={"wrap": by_header}) as server:
        response = await server.post(initialize(), {"X-Caller": "ada"})
        await response.body()
        session: Headers = {"Mcp-Session-Id": response.headers["mcp-session-id"]}
        ping = request("ping")
        assert (await server.post(ping, {**session, "X-Caller": "ada"})).status == 200
        for caller in ("eve", None):
            asked: Headers = {**session, "X-Caller": caller}
            await server.refused(await server.post(ping, asked), 404)
            await server.refused(await server.listen(asked), 404)
            await server.refused(await server.http.request("DELETE", headers=asked), 404)
        assert (await server.post(ping, {**session, "X-Caller": "ada"})).status == 200


def by_header(app: Application) -> Handler:
    """Take the caller's name from a header, as somebody in front who knows it would do."""

    async def wrapped(request: Request) -> AnyResponse:
        caller = request.headers.get(b"x-caller")
        if caller is not None:
            request.principal = caller.decode()
        return await app(request)

    return wrapped


@pytest.mark.parametrize("version", ["1999-01-01", "", "2025-11-25x", "ä"])
async def test_an_unknown_version_header_is_a_bad_request(server: Server, version: str) -> None:
    session = await server.session()
    asked: Headers = {**session, "MCP-Protocol-Version": version}
    for response in (
        await server.post(notification("x"), asked),
        await server.listen(asked),
        await server.post(request("ping"), asked),
    ):
        answer = await server.json(response, 400)
        assert "error" in answer


async def test_a_client_of_an_old_revision_need_not_send_a_version_header(server: Server) -> None:
    session = await server.session("2025-03-26")
    assert set(session) == {"Mcp-Session-Id"}
    assert (await server.json(await server.post(request("ping"), session)))["result"] == {}
