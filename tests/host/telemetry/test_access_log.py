"""Access log and request ids: a request can be found again, in the log, in its answer and in its error."""

from pathlib import Path

import msgspec

from bridgehead.host.telemetry.access_log import LINES_PER_MINUTE
from tests.support.clock import Clock
from tests.support.host_server import bearer, hosting
from tests.support.messages import call


async def test_an_id_that_a_client_gives_is_the_requests_everywhere(tmp_path: Path) -> None:
    async with hosting(tmp_path, {"BRIDGEHEAD_ACCESS_LOG": "all"}, tokens={"alice": {}}) as host:
        token = bearer(host.secrets["alice"])
        good = await host.try_call("/mcp", "alpha_echo", {**token, "X-Request-Id": "trip-42"})
        refused = await host.try_call("/nowhere", "alpha_echo", {**token, "X-Request-Id": "trip-43"})
        answer = msgspec.json.decode(await refused.body())

        assert good.headers["x-request-id"] == "trip-42"
        assert answer["error"]["data"] == {"requestId": "trip-43"}
        (line,) = host.logged("request")
        assert (line["request"], line["client"], line["status"]) == ("trip-42", "alice", 200)
        assert (line["method"], line["path"], line["address"]) == ("POST", "/mcp", "127.0.0.1")
        (line,) = host.logged("request rejected")
        assert (line["request"], line["status"], line["reason"]) == ("trip-43", 404, "path")


async def test_requests_without_an_id_get_one_of_their_own(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        ids = {(await host.get("/healthz")).headers["x-request-id"] for _ in range(5)}
    assert len(ids) == 5


async def test_an_id_that_could_break_a_line_is_not_taken(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        for bad in ('x" status=200', "a" * 65, "", "a b"):
            response = await host.get("/nowhere", {"X-Request-Id": bad})
            assert response.headers["x-request-id"] != bad


async def test_streams_carry_the_id_too(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        accept = "text/event-stream, application/json"
        response = await host.try_call("/mcp", "alpha_later", {"Accept": accept, "X-Request-Id": "trip-44"})

        assert response.headers["content-type"] == "text/event-stream"
        assert response.headers["x-request-id"] == "trip-44"


async def test_what_is_logged_during_a_request_names_it(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        answer = await (await host.post_call("/mcp", call("alpha_bug"), {"X-Request-Id": "bug-7"})).json()
        (bug,) = [line for line in host.log if line["event"].startswith("bug ")]
        assert (await host.get("/healthz")).status == 200

    assert bug["request"] == "bug-7"
    assert "a secret of the inside" in bug["traceback"]
    assert "secret" not in str(answer)


async def test_by_default_only_failures_get_a_line(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        await host.try_call("/mcp", "alpha_echo")
        await host.get("/nowhere")

        assert host.logged("request") == []
        assert len(host.logged("request rejected")) == 1


async def test_the_access_log_can_be_switched_off(tmp_path: Path) -> None:
    async with hosting(tmp_path, {"BRIDGEHEAD_ACCESS_LOG": "off"}) as host:
        await host.get("/nowhere")
        assert not any("request rejected" in line["event"] for line in host.log)


async def test_whoever_is_refused_very_often_does_not_fill_the_log(tmp_path: Path) -> None:
    clock = Clock()  # a busy machine must not earn it more lines
    async with hosting(tmp_path, clock=clock) as host:
        for _ in range(LINES_PER_MINUTE + 30):
            await host.get("/nowhere")
        assert len(host.logged("request rejected")) == LINES_PER_MINUTE

        clock.advance(60)
        await host.get("/nowhere")

        assert host.logged("request rejected")[-1]["left_out"] == 30


async def test_what_was_left_out_is_said_even_if_nobody_comes_again(tmp_path: Path) -> None:
    async with hosting(tmp_path, clock=Clock()) as host:
        for _ in range(LINES_PER_MINUTE + 30):
            await host.get("/nowhere")
    (line,) = host.logged("further rejections")
    assert (line["left_out"], line["addresses"]) == (30, 1)


async def test_a_token_in_the_wrong_place_is_not_logged(tmp_path: Path) -> None:
    async with hosting(tmp_path, {"BRIDGEHEAD_ACCESS_LOG": "all"}, tokens={"alice": {}}) as host:
        secret = host.secrets["alice"]
        jwt = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl"
        for token in (secret, jwt):
            await (await host.get(f"/{token}", {"X-Request-Id": token})).body()
            await (await host.get("/healthz", {"X-Request-Id": f"trip-{token}"})).body()
        written = host._log.getvalue()  # noqa: SLF001 - the bytes, not what they mean
    assert "(token)" in written
    assert secret not in written
    assert jwt not in written
