"""Auth: who is let in, how the others are told, and that changes hold at once."""

import asyncio
from pathlib import Path

import pytest

from bridgehead.host.auth.authenticator import FAILURES_PER_MINUTE, InvalidToken, StoredTokenIssuer
from bridgehead.host.auth.tokens import FileTokens, TokenFile, create_token
from tests.support.clock import Clock
from tests.support.host_server import bearer, hosting
from tests.support.http_client import Headers
from tests.support.http_server import mirrored
from tests.support.messages import call, request, stateless
from tests.support.waiting import until

TOKENS: dict[str, dict[str, object]] = {"alice": {}}


async def test_on_loopback_a_token_that_is_sent_counts_with_its_name_and_its_rights(tmp_path: Path) -> None:
    """Limits and budgets of a client hold for whoever shows its token, needed or not."""
    file = TokenFile(tmp_path / "host" / "tokens.json")
    entry, secret = create_token("reader", 1_800_000_000.0, read_only=True, per_minute=3)
    file.add(entry)
    async with hosting(tmp_path) as host:
        names = await host.tools("/mcp", bearer(secret))
        assert names
        assert len(names) < len(await host.tools("/mcp"))
        for _ in range(2):
            await host.tools("/mcp", bearer(secret))
        assert (await host.try_call("/mcp", "alpha_echo", bearer(secret))).status == 429
        assert (await host.try_call("/mcp", "alpha_echo")).status == 200
        metrics = (await (await host.get("/metrics")).body()).decode()
        assert 'bridgehead_client_requests_total{client="reader"}' in metrics

        revoked = bearer(secret[:-3] + "xyz")
        words = await host.refused(await host.try_call("/mcp", "alpha_echo", revoked), 401)
        assert words == "The token is not known here, or was revoked."
        for foreign in ("Bearer sk-of-another-service", "Basic YTpi"):
            sent: Headers = {"Authorization": foreign}
            assert (await host.try_call("/mcp", "alpha_echo", sent)).status == 200


async def test_on_loopback_nobody_is_asked_for_a_token(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        assert (await host.try_call("/mcp", "alpha_echo")).status == 200
        assert (await host.try_call("/mcp", "alpha_echo", bearer("whatever"))).status == 200


async def test_a_good_token_is_let_in(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        response = await host.try_call("/mcp", "alpha_echo", bearer(host.secrets["alice"]))
        assert response.status == 200


@pytest.mark.parametrize(
    ("shown", "reason", "told"),
    [
        (None, "token_missing", "A token is needed"),
        ("Bearer", "token_missing", "A token is needed"),
        ("Basic YWxpY2U6", "token_missing", "A token is needed"),
        ("Bearer nonsense", "token_unknown", "not one that is accepted"),
        ("Bearer bh_000000000000_guess", "token_unknown", "not known here"),
        ("Bearer bh_", "token_unknown", "not known here"),
        ("Bearer \xff\xfe", "token_unknown", "not one that is accepted"),
    ],
)
async def test_what_is_no_good_token_is_refused_and_logged(
    tmp_path: Path, shown: str | None, reason: str, told: str
) -> None:
    headers: Headers = {"Authorization": None if shown is None else shown.encode("latin-1")}
    async with hosting(tmp_path, tokens=TOKENS) as host:
        response = await host.try_call("/alpha/mcp", "alpha_echo", headers)

        assert told in await host.refused(response, 401)
        assert response.headers["www-authenticate"].startswith('Bearer realm="bridgehead"')
        assert ("invalid_token" in response.headers["www-authenticate"]) == (reason != "token_missing")
        (line,) = host.logged("authentication failed")
        assert (line["reason"], line["address"], line["path"]) == (reason, "127.0.0.1", "/alpha/mcp")
        assert line["request"] == response.headers["x-request-id"]
        assert host.far["alpha"].visitors == []


async def test_the_secret_of_one_token_does_not_go_with_the_id_of_another(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens={"alice": {}, "bob": {}}) as host:
        _, alice, _ = host.secrets["alice"].split("_", 2)
        _, _, secret = host.secrets["bob"].split("_", 2)
        response = await host.try_call("/mcp", "alpha_echo", bearer(f"bh_{alice}_{secret}"))
        assert response.status == 401


async def test_a_token_expires(tmp_path: Path) -> None:
    clock = Clock(runs=True)
    expires = clock.now() + 60
    async with hosting(tmp_path, tokens={"alice": {"expires": expires}}, clock=clock) as host:
        token = bearer(host.secrets["alice"])
        assert (await host.try_call("/mcp", "alpha_echo", token)).status == 200

        clock.advance(61)
        response = await host.try_call("/mcp", "alpha_echo", token)

        assert "has expired" in await host.refused(response, 401)
        assert host.logged("authentication failed")[0]["reason"] == "token_expired"


async def test_when_a_token_let_its_caller_in_is_noted_and_when_it_did_not_is_not(tmp_path: Path) -> None:
    file, clock = TokenFile(tmp_path / "tokens.json"), Clock(1000.0)
    entry, secret = create_token("alice", clock.now(), expires=1060.0)
    file.add(entry)
    tokens = FileTokens(file)
    issuer = StoredTokenIssuer(tokens, clock)

    await issuer.check(secret)
    assert tokens.last_uses == {entry.id: 1000.0}
    clock.advance(60.0)
    with pytest.raises(InvalidToken, match="has expired"):
        await issuer.check(secret)
    assert tokens.last_uses == {entry.id: 1000.0}


async def test_a_token_that_is_added_or_revoked_is_so_without_a_restart(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        new = bearer(host.token("bob"))
        assert (await host.try_call("/mcp", "alpha_echo", new)).status == 200

        host.tokens.revoke("bob")
        await until(lambda: len(host.logged("the tokens were read again")) == 2)
        assert (await host.try_call("/mcp", "alpha_echo", new)).status == 401
        assert (await host.try_call("/mcp", "alpha_echo", bearer(host.secrets["alice"]))).status == 200


async def test_a_broken_file_of_tokens_leaves_the_last_good_ones_in_force(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        host.tokens.path.write_text("{")
        await until(lambda: host.logged("the tokens cannot be read; the last ones stay valid"))

        assert (await host.try_call("/mcp", "alpha_echo", bearer(host.secrets["alice"]))).status == 200


async def test_revoking_a_token_ends_its_streams(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens={"alice": {}, "bob": {}}) as host:
        streams = {}
        for name in ("alice", "bob"):
            session = await host.session("/mcp", bearer(host.secrets[name]))
            streams[name] = await host.get("/mcp", {**session, "Accept": "text/event-stream"})
        host.tokens.revoke("alice")

        assert await streams["alice"].messages() == []  # the end of the stream, in good order
        await until(lambda: host.logged("authentication failed"))
        assert host.logged("authentication failed")[0]["reason"] == "token_ended"
        later = asyncio.ensure_future(streams["bob"].event())
        await until(lambda: host.logged("the tokens were read again"))
        assert not later.done()
        later.cancel()


async def test_a_token_that_expires_ends_its_streams(tmp_path: Path) -> None:
    clock = Clock(runs=True)
    async with hosting(tmp_path, tokens={"alice": {"expires": clock.now() + 60}}, clock=clock) as host:
        session = await host.session("/mcp", bearer(host.secrets["alice"]))
        stream = await host.get("/mcp", {**session, "Accept": "text/event-stream"})

        clock.advance(61)

        assert await stream.messages() == []


async def test_strangers_are_logged_even_where_requests_are_not(tmp_path: Path) -> None:
    async with hosting(tmp_path, {"BRIDGEHEAD_ACCESS_LOG": "off"}, tokens=TOKENS) as host:
        await host.try_call("/mcp", "alpha_echo")
        assert len(host.logged("authentication failed")) == 1


async def test_revoking_a_token_stops_a_call_that_has_not_begun_to_answer(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        message = stateless("tools/call", call("alpha_wait"))
        calling = asyncio.ensure_future(
            host.post("/mcp", message, {**mirrored(message), **bearer(host.secrets["alice"])})
        )
        await until(lambda: host.far["alpha"].visitors)
        host.tokens.revoke("alice")

        assert await host.refused(await calling, 401) == "The token has been revoked or has expired."


async def test_a_caller_may_not_ask_more_often_than_its_token_says(tmp_path: Path) -> None:
    clock = Clock(runs=True)
    async with hosting(tmp_path, tokens={"slow": {"per_minute": 3}, "fast": {}}, clock=clock) as host:
        slow, fast = bearer(host.secrets["slow"]), bearer(host.secrets["fast"])
        statuses = [(await host.try_call("/mcp", "alpha_echo", slow)).status for _ in range(4)]
        response = await host.try_call("/mcp", "alpha_echo", slow)

        assert statuses == [200, 200, 200, 429]
        assert await host.refused(response, 429) == "slow may make 3 requests a minute"
        assert 1 <= int(response.headers["retry-after"]) <= 20
        assert (await host.try_call("/mcp", "alpha_echo", fast)).status == 200
        clock.advance(20)
        assert (await host.try_call("/mcp", "alpha_echo", slow)).status == 200


async def test_failures_of_one_address_are_limited_and_good_tokens_are_not(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        statuses = [
            (await host.try_call("/mcp", "alpha_echo", bearer("bh_x_y"))).status
            for _ in range(FAILURES_PER_MINUTE + 5)
        ]

        assert statuses == [401] * FAILURES_PER_MINUTE + [429] * 5
        assert len(host.logged("authentication failed")) == FAILURES_PER_MINUTE
        assert (await host.try_call("/mcp", "alpha_echo")).status == 401  # which guesses at nothing
        assert (await host.try_call("/mcp", "alpha_echo", bearer(host.secrets["alice"]))).status == 200


async def test_metrics_are_for_tokens_that_open_them(tmp_path: Path) -> None:
    tokens = {"alice": {}, "prometheus": {"bridges": ("none",), "metrics": True}}
    async with hosting(tmp_path, tokens=tokens) as host:
        alice, prometheus = bearer(host.secrets["alice"]), bearer(host.secrets["prometheus"])

        assert (await host.get("/metrics")).status == 401
        assert "does not open metrics" in await host.refused(await host.get("/metrics", alice), 403)
        assert (await host.get("/metrics", prometheus)).status == 200
        response = await host.try_call("/mcp", "alpha_echo", prometheus)
        assert await host.refused(response, 403) == "This token does not open any bridge"
        assert 'error="insufficient_scope"' in response.headers["www-authenticate"]


async def test_a_session_of_the_handshake_era_needs_the_token_on_every_request(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        session = await host.session("/mcp", bearer(host.secrets["alice"]))
        without: Headers = {**session, "Authorization": None}

        assert (await host.post("/mcp", request("tools/list"), without)).status == 401
        assert (await host.get("/mcp", {**without, "Accept": "text/event-stream"})).status == 401
        assert (await host.http.request("DELETE", "/mcp", without)).status == 401
        assert (await host.http.request("DELETE", "/mcp", session)).status == 204


async def test_a_new_token_of_an_old_name_does_not_inherit_its_sessions(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens={"alice": {}}) as host:
        session = await host.session("/mcp", bearer(host.secrets["alice"]))
        host.tokens.revoke("alice")
        again: Headers = {**session, **bearer(host.token("alice"))}
        response = await host.post("/mcp", request("tools/list"), again)
        assert response.status == 404


async def test_while_tokens_were_never_read_nobody_is_let_in_and_a_good_one_is_not_called_bad(
    tmp_path: Path,
) -> None:
    far_database = {"BRIDGEHEAD_AUTH": "on", "BRIDGEHEAD_DATABASE_URL": "postgresql://me@127.0.0.1:9/none"}
    async with hosting(tmp_path, far_database) as host:
        for _ in range(FAILURES_PER_MINUTE + 1):  # these are no guesses
            response = await host.try_call("/mcp", "alpha_echo", bearer("bh_000000000000_secret"))

            assert "its database is down" in await host.refused(response, 503)
            assert response.headers["retry-after"] == "1"

        assert host.logged("authentication failed") == []
        assert {line["reason"] for line in host.logged("request rejected")} == {"tokens"}
        assert host.far["alpha"].visitors == []
