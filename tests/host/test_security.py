"""Security: what an attacker tries is refused or bounded, and logged; and no secret is in any output."""

import asyncio
import socket
from pathlib import Path

import pytest

from bridgehead.host.telemetry.access_log import LINES_PER_MINUTE
from bridgehead.runtime import logs
from tests.host.telemetry.test_metrics import scraped
from tests.support.clock import Clock
from tests.support.host_server import Host, bearer, hosting
from tests.support.http_server import JSON_POST
from tests.support.messages import Json, call
from tests.support.posix import resource
from tests.support.waiting import PATIENCE

TOKENS: dict[str, dict[str, object]] = {"alice": {"metrics": True}}


async def refusal(host: Host, reason: str, times: int = 1) -> Json:
    """Wait until a refusal is in the log and counted in the metrics; return its line."""
    key = f'bridgehead_refusals_total{{reason="{reason}"}}'
    async with asyncio.timeout(PATIENCE):
        while (await scraped(host, host.secrets.get("alice", ""))).get(key, 0) < times:
            await asyncio.sleep(0.1)
    return next(line for line in host.log if line.get("reason") == reason)


async def closed_for(host: Host, reason: str) -> float:
    """Read how many connections were closed for a reason."""
    return (await scraped(host)).get(f'bridgehead_refusals_total{{reason="{reason}"}}', 0)


@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1.evil.example", "localhost@evil.example", ""])
async def test_a_wrong_host_is_refused(tmp_path: Path, name: str) -> None:
    async with hosting(tmp_path) as host:
        for path in ("/mcp", "/alpha/mcp", "/metrics"):
            response = await host.http.request("POST", path, {**JSON_POST, "Host": name}, b"{}")
            assert response.status == 421, path
        line = await refusal(host, "host", 3)
        assert (line["level"], line["address"], line["status"]) == ("warn", "127.0.0.1", 421)


async def test_a_wrong_origin_is_refused(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        for origin in ("https://evil.example", "null", "http://localhost.evil.example"):
            response = await host.try_call("/mcp", "alpha_echo", {"Origin": origin})
            assert response.status == 403, origin
        await refusal(host, "origin", 3)
        assert host.far["alpha"].visitors == []


async def test_a_token_that_is_wrong_or_has_expired_is_refused(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens={**TOKENS, "old": {"expires": 1_799_999_999.0}}) as host:
        for secret, reason in ((host.secrets["old"], "token_expired"), ("bh_x_y", "token_unknown")):
            response = await host.try_call("/mcp", "alpha_echo", bearer(secret))
            assert response.status == 401
            line = await refusal(host, reason)
            assert line["event"] == "authentication failed"
        assert host.far["alpha"].visitors == []


async def test_connections_that_are_opened_and_left_do_not_keep_others_out(tmp_path: Path) -> None:
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(5000, (most - 500) // 2)
    settings = {"BRIDGEHEAD_IDLE_SECONDS": "4", "BRIDGEHEAD_CONNECTIONS": str(2 * (count + 100))}
    async with hosting(tmp_path, settings, clock=Clock()) as host:
        left = []
        try:
            for number in range(count):
                one = socket.socket()
                one.setblocking(False)  # noqa: FBT003 - its name says what it sets
                left.append(one)
                await asyncio.get_running_loop().sock_connect(one, ("127.0.0.1", host.port))
                if number % 2:
                    one.send(b"POST /mcp HTTP/1.1\r\nHost: loc")  # and never go on
            async with asyncio.timeout(PATIENCE):
                assert (await host.try_call("/mcp", "alpha_echo")).status == 200
            # Closed when they have been silent for too long; on a busy machine also before a head was read.
            async with asyncio.timeout(PATIENCE):
                while await closed_for(host, "idle") + await closed_for(host, "slow_head") < count:
                    await asyncio.sleep(0.1)
            assert await closed_for(host, "slow_head") > 0
        finally:
            for one in left:
                one.close()
    lines = host.logged("connection rejected")
    assert len(lines) == LINES_PER_MINUTE
    assert len(lines) + sum(line.get("left_out", 0) for line in host.log) == count  # the others are counted


@pytest.mark.parametrize(
    "settings",
    [
        {"BRIDGEHEAD_CONNECTIONS": "6"},  # of which one address may have half
        {"BRIDGEHEAD_CONNECTIONS": "3", "BRIDGEHEAD_TRUSTED_PROXIES": "127.0.0.1"},  # which may have all
    ],
)
async def test_more_connections_than_allowed_are_turned_away_with_words(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    async with hosting(tmp_path, settings, tokens=TOKENS) as host:
        first, *_ = [(await host.http.begin(b""))[0] for _ in range(3)]
        response, _ = await host.http.begin(b"")
        await response.begin()
        assert response.status == 503
        await first.hang_up()
        line = await refusal(host, "connections")
        assert (line["address"], line["status"]) == ("127.0.0.1", 503)


@pytest.mark.parametrize(
    ("sent", "status", "reason"),
    [
        (b"no HTTP at all\r\n\r\n", 400, "malformed"),
        (b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400, "malformed"),
        (b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nX: a\rX-Evil: 1\r\n\r\n", 400, "malformed"),
        (b"GET / HTTP/1.1\r\n" + b"X-%d: y\r\n" * 200 % tuple(range(200)), 431, "head_size"),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", 431, "head_size"),
        (b"GET / HTTP/1.1\r\nX: ", 408, "slow_head"),
    ],
)
async def test_what_is_no_good_request_is_refused(
    tmp_path: Path, sent: bytes, status: int, reason: str
) -> None:
    async with hosting(tmp_path, {"BRIDGEHEAD_IDLE_SECONDS": "0.5"}, tokens=TOKENS) as host:
        response, _ = await host.http.begin(sent)
        await response.begin()
        assert response.status == status
        line = await refusal(host, reason)
        assert (line["event"], line["status"]) == ("connection rejected", status)


async def test_a_client_that_reads_nothing_is_given_up_and_costs_no_memory(tmp_path: Path) -> None:
    async with hosting(tmp_path, {"BRIDGEHEAD_IDLE_SECONDS": "0.5"}) as host:
        # Few and large, and far more than the system's own buffers hold.
        asking = host.http.head("GET", "/metrics", {"X-Padding": "x" * 2000}) * 20_000
        with socket.create_connection(("127.0.0.1", host.port)) as client:
            client.setblocking(False)  # noqa: FBT003 - its name says what it sets
            sending = asyncio.get_running_loop().sock_sendall(client, asking)
            with pytest.raises(ConnectionError):  # it is made to wait, and then cut off
                await asyncio.wait_for(sending, PATIENCE)
        await refusal(host, "slow_reader")


@pytest.mark.parametrize(
    "uri", ["file:///etc/passwd", "alpha://../beta/note", "alpha://note/../../etc", "\0"]
)
async def test_tricks_with_a_uri_lead_nowhere(tmp_path: Path, uri: str) -> None:
    async with hosting(tmp_path) as host:
        session = await host.session("/mcp")
        answer = await host.in_session("/mcp", session, "resources/read", {"uri": uri})
        assert "result" not in answer
        (line,) = [line for line in host.log if line["event"].startswith("resources/read refused: ")]
        assert (line["level"], "request" in line) == ("info", True)


async def test_no_secret_is_in_any_output(tmp_path: Path) -> None:
    async with hosting(tmp_path, {"BRIDGEHEAD_ACCESS_LOG": "all"}, tokens=TOKENS) as host:
        secret = host.secrets["alice"]
        token = bearer(secret)
        responses = [
            await host.try_call("/mcp", "alpha_echo", token),
            await host.try_call("/nowhere", "alpha_echo", token),
            await host.try_call("/mcp", "alpha_echo", bearer(secret + "x")),
            await host.post_call("/mcp", call("alpha_bug"), token),
            await host.post("/mcp", b"{" + secret.encode(), token),
            await host.get("/metrics", token),
            await host.get("/readyz", token),
        ]
        said = [f"{response.headers}{await response.body()!r}" for response in responses]
        private = secret[-20:]

        assert not any(private in text for text in said)
        assert private not in str(host.log)
        assert private not in host.tokens.path.read_text()
        assert "a secret of the inside" not in "".join(said)


async def test_a_secret_of_a_bridge_is_hidden_in_the_hosts_log(tmp_path: Path) -> None:
    logs.hide("sk-very-secret")
    async with hosting(tmp_path) as host:
        await host.get("/sk-very-secret")
        (line,) = host.logged("request rejected")
    assert line["path"] == "/***"
