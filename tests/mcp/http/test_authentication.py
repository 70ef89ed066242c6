"""Who may call: only those with a token or whom the author's function knows; everybody else gets 401."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mcp import Arguments, Bridge, Context
from bridgehead.mcp.http import application, asgi, authentication
from tests.support.asgi_runner import AsgiRunner
from tests.support.http_client import Headers, HttpClient
from tests.support.http_server import JSON_POST, Server, own_server, serving
from tests.support.messages import call, encode, initialize, request, stateless
from tests.support.waiting import PATIENCE

ALICE, BOB = "alice-has-this-secret", "bob-has-another-secret"
EVERY_PATH = [
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("GET", "/sse"),
    ("POST", "/messages"),
    ("GET", "/elsewhere"),
]


def bearer(token: str) -> Headers:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(params=["own", "as ASGI"])
def settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Call the application itself, or through the ASGI adapter."""
    return {"wrap": lambda app: AsgiRunner(asgi(app))} if request.param == "as ASGI" else {}


async def challenge(server: Server, headers: Headers | None = None) -> tuple[str, str]:
    """Send a request that is refused; return the challenge and the sentence."""
    response = await server.post(initialize(), headers)
    said = await server.refused(response, 401)
    return response.headers["www-authenticate"], said


async def test_without_a_token_every_path_answers_401_with_a_challenge(settings: dict[str, Any]) -> None:
    async with serving(settings=settings, tokens=[ALICE]) as server:
        for method, path in EVERY_PATH:
            response = await server.http.request(method, path, JSON_POST, encode(initialize()))
            assert (response.status, response.headers["www-authenticate"]) == (401, 'Bearer realm="mcp"')
            await response.body()


@pytest.mark.parametrize(
    "header",
    [
        f"Bearer {ALICE}x",
        f"Bearer {ALICE[:-1]}",
        "Bearer ",
        f"Basic {ALICE}",
        ALICE,
        f"Bearer {ALICE} {ALICE}",
    ],
)
async def test_a_token_that_is_not_exactly_right_is_refused(header: str) -> None:
    async with serving(tokens=[ALICE]) as server:
        told, said = await challenge(server, {"Authorization": header})

    assert told == 'Bearer realm="mcp", error="invalid_token"'
    assert "Authorization: Bearer TOKEN" in said
    assert ALICE not in said


@pytest.mark.parametrize("tokens", [[BOB, ALICE], {ALICE: "alice"}, {ALICE}, ALICE])
async def test_a_token_opens_it_in_both_eras(tokens: Any, settings: dict[str, Any]) -> None:
    async with serving(settings=settings, tokens=tokens) as server:
        response = await server.post(initialize(), bearer(ALICE))
        assert (await server.json(response))["result"]["protocolVersion"]
        modern = await server.stateless(stateless("tools/list", {}), {"Authorization": f"bearer  {ALICE}"})
        assert (await server.json(modern))["result"]["tools"]


async def test_a_session_belongs_to_the_one_who_opened_it() -> None:
    async with serving(tokens={ALICE: "alice", BOB: "bob"}) as server:
        opened = await server.post(initialize(), bearer(ALICE))
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        await opened.body()
        asked = request("tools/list", {}, 1)
        stolen = await server.post(asked, {**session, **bearer(BOB)})
        own = await server.post(asked, {**session, **bearer(ALICE)})

        assert await server.refused(stolen, 404)
        assert (await server.json(own))["result"]["tools"]


def make_whoami() -> Bridge[None]:
    bridge: Bridge[None] = Bridge("who", "1")

    @bridge.tool("Who calls.", read_only=True)
    def whoami(_args: Arguments, ctx: Context[None]) -> str:
        return str(ctx.principal)

    return bridge


async def principal(headers: Headers, **options: Any) -> str:
    """Return who calls, as a tool sees it."""
    import socket

    app = application(make_whoami(), **options)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with own_server(app, listener):
            http = HttpClient(listener.getsockname()[1])
            message = stateless("tools/call", call("whoami", {}), 1)
            mirrored: Headers = {
                "MCP-Protocol-Version": "2026-07-28",
                "Mcp-Method": "tools/call",
                "Mcp-Name": "whoami",
            }
            response = await http.request(
                "POST", "/mcp", {**JSON_POST, **mirrored, **headers}, encode(message)
            )
            answer = await response.json()
            await http.close()
    return str(answer["result"]["content"][0]["text"])


async def test_a_tool_sees_who_calls_and_never_the_token() -> None:
    assert await principal(bearer(ALICE), tokens={ALICE: "alice"}) == "alice"
    nameless = await principal(bearer(ALICE), tokens=[ALICE, BOB])
    assert re.fullmatch("token-[0-9a-f]{8}", nameless)
    assert nameless != await principal(bearer(BOB), tokens=[ALICE, BOB])
    assert nameless == await principal(bearer(ALICE), tokens=[BOB, ALICE])


async def test_a_function_of_the_author_says_who_calls_with_any_spelling_of_a_header() -> None:
    def who(headers: Mapping[str, str]) -> str | None:
        assert headers["X-User"] == headers["x-user"]
        assert "X-USER" in headers
        assert dict(headers)["x-user"]
        return headers.get("X-User")

    async def who_later(headers: Mapping[str, str]) -> str | None:
        await asyncio.sleep(0)
        return headers.get("x-user")

    for authenticate in (who, who_later):
        assert await principal({"X-User": "carol"}, authenticate=authenticate) == "carol"


@pytest.mark.parametrize("answer", [None, "", False])
@pytest.mark.parametrize("is_async", [False, True])
async def test_whom_the_function_does_not_know_is_refused(
    answer: object, settings: dict[str, Any], *, is_async: bool
) -> None:
    async def later(_headers: Mapping[str, str]) -> Any:
        return answer

    authenticate: Any = later if is_async else lambda _headers: answer
    async with serving(settings=settings, authenticate=authenticate) as server:
        assert (await challenge(server))[0] == 'Bearer realm="mcp"'
        told, _ = await challenge(server, bearer("anything"))
        assert told == 'Bearer realm="mcp", error="invalid_token"'


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_function_that_fails_or_answers_something_else_lets_nobody_in(*, is_async: bool) -> None:
    def fail(_headers: Mapping[str, str]) -> str:
        raise KeyError(ALICE)

    for broken in (fail, lambda _headers: True):

        async def later(headers: Mapping[str, str], broken: Any = broken) -> Any:
            return broken(headers)

        authenticate: Any = later if is_async else broken
        async with serving(authenticate=authenticate, complaint="the handler failed") as server:
            response = await server.post(initialize(), bearer(ALICE))
            assert response.status == 500
            assert ALICE.encode() not in await response.body()


async def test_a_function_that_never_answers_is_given_up_on() -> None:
    async def never(_headers: Mapping[str, str]) -> str:
        await asyncio.Event().wait()
        return "nobody"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(authentication, "WAIT_SECONDS", 0.01)
        async with serving(authenticate=never) as server:
            response = await server.post(initialize())
            assert "try again" in (await server.refused(response, 503)).lower()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"tokens": []}, "tokens is empty"),
        ({"tokens": {}}, "tokens is empty"),
        ({"tokens": [""]}, "at least 16 characters"),
        ({"tokens": {"alice": ALICE}}, "at least 16 characters"),
        ({"tokens": [f"{ALICE} "]}, "visible ASCII"),
        ({"tokens": {ALICE: ""}}, "name of the caller"),
        ({"tokens": [ALICE], "authenticate": lambda _headers: "x"}, "either tokens or authenticate"),
    ],
)
def test_what_would_let_nobody_or_everybody_in_is_refused_when_it_is_declared(
    options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason) as refused:
        application(make_whoami(), **options)

    assert ALICE not in str(refused.value)


SCRIPT = """
from bridgehead.mcp import Bridge, http
import sys

http.run(http.application(Bridge("weather", "1.2.0"){options}), {host!r}, port=0)
"""


@pytest.mark.parametrize(
    ("options", "host", "warning"),
    [("", "127.0.0.1", False), ("", "0.0.0.0", True), (f", tokens=[{ALICE!r}]", "0.0.0.0", False)],  # noqa: S104
)
def test_run_prints_its_address_and_warns_of_an_open_door(
    tmp_path: Path, options: str, host: str, *, warning: bool
) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.format(options=options, host=host), encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, str(path)], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        second = process.stderr.readline() if warning else ""
        process.terminate()
        out, rest = process.communicate(timeout=PATIENCE)

    address = re.fullmatch(rf"weather 1\.2\.0 at http://{re.escape(host)}:(\d+)/mcp\n", first)
    assert address, first
    assert int(address[1]) > 0
    assert ("without a token" in second) is warning
    assert (out, rest) == ("", "")
