"""Clients: tokens, limits and sessions are shown, and those who may act can end them."""

import asyncio
import re
from pathlib import Path
from typing import Any

from tests.host.dashboard.browsing import Browser
from tests.host.dashboard.test_templates import HOSTILE
from tests.support.host_server import Host, bearer, hosting
from tests.support.messages import initialize
from tests.support.waiting import PATIENCE

TOKENS: dict[str, dict[str, Any]] = {
    "ann": {"dashboard": True},
    "boss": {"admin": True, "per_minute": 600, "expires": 1_900_000_000.0},
    "bot": {"bridges": ("alpha",), "read_only": True, "may_spend": True},
    "old": {"expires": 1.0},
}


async def signed_in(host: Host, name: str) -> Browser:
    browser = Browser(host)
    await browser.sign_in(host.secrets[name])
    return browser


async def test_tokens_are_listed_with_what_they_open(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        await host.try_call("/mcp", "alpha_echo", bearer(host.secrets["bot"]))
        text = await (await signed_in(host, "ann")).open("/dashboard/clients")

        assert re.search("botalpharead, spendno limit12027-01-15[0-9]+ s agonever", text)
        assert "bossalleverything, admin60002027-01-15none recorded2030-03-17" in text
        assert "1970-01-01 expired" in text
        assert "Revoke" not in text  # who may look may not act


async def test_the_last_use_of_a_token_is_known_to_the_next_server(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        await host.try_call("/mcp", "alpha_echo", bearer(host.secrets["bot"]))
        assert (await host.try_call("/mcp", "alpha_echo", bearer(host.secrets["old"]))).status == 401
        secrets = host.secrets
    async with hosting(tmp_path, {"BRIDGEHEAD_TOKENS_FILE": str(tmp_path / "tokens.json")}) as host:
        browser = Browser(host)
        await browser.sign_in(secrets["ann"])
        async with asyncio.timeout(PATIENCE):
            while not re.search("botalpharead, spendno limit02027-01-15[0-9]+ s ago", browser.page.text):
                await browser.open("/dashboard/clients")

        assert "none recorded1970-01-01 expired" in browser.page.text


async def test_a_token_is_revoked_after_a_question(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        browser = await signed_in(host, "boss")
        assert "The token of bot stops working" in await browser.open("/dashboard/revoke?name=bot")
        text = await browser.submit("/dashboard/revoke", {"name": "bot"})

        assert "botalpha" not in text
        assert {token.name for token in host.tokens.read().tokens} == {"ann", "boss", "old"}
        assert (await host.try_call("/mcp", "alpha_echo", bearer(host.secrets["bot"]))).status == 401
        (line,) = host.logged("a token was revoked")
        assert (line["token"], line["client"]) == ("bot", "boss")
        assert "Token not found" in await browser.open("/dashboard/revoke?name=bot")


async def test_who_may_only_look_cannot_act(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        session = await host.session("/mcp", bearer(host.secrets["bot"]))
        browser = await signed_in(host, "ann")
        for path in ("/dashboard/revoke", "/dashboard/end-session"):
            await browser.open("/dashboard/clients")
            text = await browser.submit(path, {"name": "bot", "handle": "x"})
            assert (browser.status, "may look but not act" in text) == (403, True)
        assert "may look but not act" in await browser.open("/dashboard/revoke?name=bot")
        assert "result" in await host.in_session("/mcp", session, "tools/list")


async def test_a_session_is_ended(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        session = await host.session("/mcp", bearer(host.secrets["bot"]))
        browser = await signed_in(host, "boss")
        text = await browser.open("/dashboard/clients")
        assert str(session["Mcp-Session-Id"]) not in browser.html
        assert "1 of 250" in text

        (handle,) = [a["value"] for _, a in browser.page.elements if a.get("name") == "handle"]
        text = await browser.submit("/dashboard/end-session", {"handle": str(handle), "worker": "0"})

        assert "No session is open." in text
        answer = await host.in_session("/mcp", session, "tools/list")
        assert "The session is unknown" in answer["error"]["message"]
        assert "Session not found" in await browser.submit("/dashboard/end-session", {"handle": str(handle)})


async def test_what_a_client_calls_itself_is_text(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        message = initialize()
        message["params"]["clientInfo"] = {"name": HOSTILE[1], "version": HOSTILE[0]}
        async with asyncio.timeout(PATIENCE):
            assert (await host.post("/mcp", message)).status == 200
        browser = Browser(host)
        text = await browser.open("/dashboard/clients")

        assert f"{HOSTILE[1]} {HOSTILE[0]}" in text
        assert [name for name, a in browser.page.elements if name == "img" and a.get("src") == "x"] == []


async def test_requests_that_were_refused_are_explained(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        await host.try_call("/mcp", "alpha_echo")
        text = await (await signed_in(host, "ann")).open("/dashboard/failures")

        assert "token_missing1No token was sent." in text
