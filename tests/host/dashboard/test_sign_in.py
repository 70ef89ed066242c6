"""Sign-in: a token shown once opens the page, nothing else does, and no other page can act for its owner."""

from pathlib import Path
from typing import Any

import pytest

from bridgehead.host.dashboard.sign_in import SESSION_SECONDS
from tests.host.dashboard.browsing import ACCEPT, FORM, Browser
from tests.support.clock import Clock
from tests.support.host_authority import guarded
from tests.support.host_server import Host, bearer, hosting
from tests.support.http_client import Headers
from tests.support.redis_server import RedisServer
from tests.support.waiting import until

TOKENS: dict[str, dict[str, Any]] = {
    "ann": {"dashboard": True},
    "boss": {"admin": True},
    "bot": {"metrics": True, "events": True},
}


async def test_without_a_token_there_is_only_the_form_for_one(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        browser = Browser(host)
        pages = ("clients", "failures", "mistyped", "bridge?name=alpha")
        for path in ("/", *(f"/dashboard/{page}" for page in pages)):
            text = await browser.open(path)
            assert "Sign in with a token" in text
            assert "alpha" not in browser.html
            assert "data-live" not in browser.html  # by which a page that is open notices that it is out


async def test_a_token_that_may_look_opens_the_page_until_signing_out(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        browser = Browser(host)
        text = await browser.sign_in(host.secrets["ann"])
        assert ("The far side of alpha is there." in text, "ann" in text) == (True, True)
        assert "data-live" in browser.html

        assert "Sign in with a token" in await browser.submit("/dashboard/sign-out")
        assert browser.cookies.keys() == {f"bridgehead_page_{host.port}"}


async def test_a_copy_of_the_cookie_opens_nothing_after_signing_out(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        browser, thief, other = Browser(host), Browser(host), Browser(host)
        await browser.sign_in(host.secrets["ann"])
        await other.sign_in(host.secrets["ann"])
        thief.cookies = dict(browser.cookies)
        assert "The far side of alpha is there." in await thief.open("/")

        await browser.submit("/dashboard/sign-out")

        assert "Sign in with a token" in await thief.open("/")
        # Another sign-in with the same token is a session of its own, and so is the next one here.
        assert "The far side of alpha is there." in await other.open("/")
        assert "The far side of alpha is there." in await browser.sign_in(host.secrets["ann"])


async def test_a_session_that_was_signed_out_stays_ended_when_the_host_starts_again(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    settings = {"BRIDGEHEAD_STATE_KEYS": "k" * 32, "BRIDGEHEAD_REDIS_URL": redis_server.url}
    async with hosting(tmp_path, settings, tokens=TOKENS) as host:
        browser, thief = Browser(host), Browser(host)
        await browser.sign_in(host.secrets["ann"])
        thief.cookies = dict(browser.cookies)
        await browser.submit("/dashboard/sign-out")
        old_port, secret = host.port, host.secrets["ann"]
    settings["BRIDGEHEAD_TOKENS_FILE"] = str(tmp_path / "tokens.json")
    async with hosting(tmp_path, settings) as host:
        again = Browser(host)
        # Cookies are named after the port, which is another one now.
        again.cookies = {name.replace(str(old_port), str(host.port)): v for name, v in thief.cookies.items()}

        assert "Sign in with a token" in await again.open("/")
        assert "The far side of alpha is there." in await again.sign_in(secret)


async def test_signing_out_that_cannot_be_stored_says_that_the_session_goes_on(tmp_path: Path) -> None:
    settings = {"BRIDGEHEAD_STATE_KEYS": "k" * 32, "BRIDGEHEAD_REDIS_URL": "redis://127.0.0.1:1"}
    async with hosting(tmp_path, settings, tokens=TOKENS) as host:
        browser = Browser(host)
        await browser.sign_in(host.secrets["ann"])

        text = await browser.submit("/dashboard/sign-out")

        assert (browser.status, "You are still signed in" in text) == (503, True)
        assert "The far side of alpha is there." in await browser.open("/")


async def test_the_cookie_is_for_this_server_and_its_own_pages_alone(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        browser = Browser(host)
        await browser.open("/")
        body = f"csrf={browser.proof}&token={host.secrets['ann']}".encode()
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        sent: Headers = {"Accept": ACCEPT, "Content-Type": FORM, "Cookie": cookie}
        response = await host.http.request("POST", "/dashboard/sign-in", sent, body)

        (given,) = response.cookies
        assert "; Path=/; HttpOnly; SameSite=Strict" in given
        assert host.secrets["ann"].split("_", 2)[2] not in given  # a stolen cookie is not a token
        assert (await host.get("/metrics", {"Cookie": given.partition(";")[0]})).status == 401


async def test_under_tls_the_cookie_is_secure(tmp_path: Path) -> None:
    settings = {"BRIDGEHEAD_TRUSTED_PROXIES": "127.0.0.1"}
    async with hosting(tmp_path, settings, tokens=TOKENS) as host:
        response = await host.get("/", {"Accept": ACCEPT, "X-Forwarded-Proto": "https"})

        (given,) = response.cookies
        assert given.startswith("__Host-bridgehead_page")
        assert given.endswith("; Secure")


@pytest.mark.parametrize("sent", [None, "http", "ftp", "https"])
async def test_with_an_https_address_the_cookie_is_secure_whatever_the_proxy_says(
    tmp_path: Path, sent: str | None
) -> None:
    settings = {"BRIDGEHEAD_PUBLIC_URL": "https://team.example", "BRIDGEHEAD_TRUSTED_PROXIES": "127.0.0.1"}
    async with hosting(tmp_path, settings, tokens=TOKENS) as host:
        response = await host.get("/", {"Accept": ACCEPT, "X-Forwarded-Proto": sent})

        (given,) = response.cookies
        assert given.startswith("__Host-bridgehead_page")
        assert given.endswith("; Secure")


@pytest.mark.parametrize(
    ("token", "status", "words"),
    [
        ("bh_0123456789ab_wrong", 401, "The token is not known here, or was revoked."),
        ("nonsense <b>", 401, "The token is not one that is accepted here."),
        ("", 400, "Enter a token."),
        (
            "bot",
            403,
            "This token does not open the dashboard. Ask the server's operator for one with --dashboard.",
        ),
    ],
)
async def test_a_token_that_opens_nothing_is_refused_with_the_reason(
    tmp_path: Path, token: str, status: int, words: str
) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        browser = Browser(host)
        text = await browser.sign_in(host.secrets.get(token, token))

        assert (browser.status, words in text) == (status, True)
        assert "Sign in with a token" in await browser.open("/")


async def test_wrong_tokens_are_counted_logged_and_limited_as_elsewhere(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS, clock=Clock()) as host:
        browser = Browser(host)
        for _ in range(20):
            await browser.sign_in("bh_0123456789ab_wrong")
        text = await browser.sign_in("bh_0123456789ab_wrong")

        assert (browser.status, "Too many requests from your address" in text) == (429, True)
        lines = host.logged("authentication failed")
        assert {(line["reason"], line["status"]) for line in lines} == {("token_unknown", 401)}
        assert (await host.try_call("/mcp", "alpha_echo", bearer("bh_0123456789ab_wrong"))).status == 429


async def test_who_is_signed_in_is_out_as_soon_as_the_token_is_revoked(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        browser = Browser(host)
        await browser.sign_in(host.secrets["ann"])
        host.tokens.revoke("ann")
        tokens = host.app.dashboard._tokens if host.app.dashboard else None  # noqa: SLF001
        assert tokens is not None
        await until(lambda: all(token.grant.name != "ann" for token in tokens.listed))

        assert "Sign in with a token" in await browser.open("/dashboard/clients")


async def test_a_sign_in_ends_after_some_hours(tmp_path: Path) -> None:
    clock = Clock(runs=True)
    async with hosting(tmp_path, tokens=TOKENS, clock=clock) as host:
        browser = Browser(host)
        await browser.sign_in(host.secrets["ann"])
        clock.advance(SESSION_SECONDS + 1)

        assert "Sign in with a token" in await browser.open("/")


@pytest.mark.parametrize("place", range(4))
async def test_a_cookie_that_was_changed_opens_nothing(tmp_path: Path, place: int) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        browser = Browser(host)
        await browser.sign_in(host.secrets["ann"])
        name = f"bridgehead_token_{host.port}"
        parts = browser.cookies[name].split(".")
        other = "0" if parts[place][-1] != "0" else "1"
        parts[place] = {2: "99999999999"}.get(place, parts[place][:-1] + other)
        browser.cookies[name] = ".".join(parts)

        assert "Sign in with a token" in await browser.open("/")


async def signed_in(host: Host, name: str) -> Browser:
    browser = Browser(host)
    await browser.sign_in(host.secrets[name])
    await browser.open("/dashboard/clients")
    return browser


async def test_a_form_without_the_proof_of_our_page_does_nothing(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        for wrong in ("", "x", "ü"):
            browser = await signed_in(host, "boss")
            text = await browser.submit("/dashboard/revoke", {"name": "bot", "csrf": wrong})
            assert (browser.status, "The page is too old" in text) == (403, True)
        assert {token.name for token in host.tokens.read().tokens} == set(TOKENS)


async def test_the_proof_of_one_visitor_does_not_serve_another(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        mine, theirs = await signed_in(host, "ann"), await signed_in(host, "boss")
        await theirs.submit("/dashboard/revoke", {"name": "bot", "csrf": mine.proof})

        assert theirs.status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://localhost:1"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "https://evil.example"},
    ],
)
async def test_a_form_that_another_page_sends_does_nothing(tmp_path: Path, headers: dict[str, str]) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        browser = await signed_in(host, "boss")
        await browser.submit("/dashboard/revoke", {"name": "bot"}, headers)

        assert browser.status == 403
        assert {token.name for token in host.tokens.read().tokens} == set(TOKENS)


async def test_a_body_that_is_no_form_or_too_large_is_refused(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        browser = Browser(host)
        await browser.open("/")
        await browser.submit("/dashboard/sign-in", {"token": "x" * 3}, {"Content-Type": "application/json"})
        assert browser.status == 415
        await browser.open("/")
        await browser.submit("/dashboard/sign-in", {"token": "x" * 300_000})
        assert browser.status == 413


async def test_where_nobody_needs_a_token_everybody_on_the_machine_may_act(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        await host.session("/mcp")
        browser = Browser(host)
        text = await browser.open("/dashboard/clients")

        assert "Nobody needs a token here" in text
        assert "Sign out" not in text
        assert browser.proof


async def test_an_access_token_of_the_authorisation_server_opens_the_page_while_it_holds(
    tmp_path: Path,
) -> None:
    async with guarded(tmp_path) as (host, issuer):
        browser = Browser(host)
        token = issuer.token(scope="bridgehead:read bridgehead:dashboard")
        text = await browser.sign_in(token)
        assert ("The far side of alpha is there." in text, "oauth:" in text) == (True, True)

        browser.cookies[f"bridgehead_token_{host.port}"] = token[:-4] + "AAAA"
        assert "Sign in with a token" in await browser.open("/")
        assert "does not open the dashboard" in await Browser(host).sign_in(issuer.token(scope="bridgehead"))


async def test_whoever_follows_a_link_from_another_site_is_still_signed_in(tmp_path: Path) -> None:
    led: Headers = {"Cookie": None, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}
    async with hosting(tmp_path, tokens=TOKENS) as host:
        browser = Browser(host)
        await browser.sign_in(host.secrets["ann"])
        before = dict(browser.cookies)
        await browser.open("/dashboard/bridge?name=alpha%22", led)

        assert browser.cookies == before
        assert 'content="0;url=/dashboard/bridge?name=alpha%22"' in browser.html
        await browser.open("/dashboard/bridge?name=alpha", {"Sec-Fetch-Site": "same-origin"})
        assert browser.status == 200
        assert "ann" in browser.page.text
