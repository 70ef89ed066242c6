"""Sign-in by OAuth: a browser goes to the issuer and comes back, once, and nobody comes in its place."""

import re
import time
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from bridgehead.host.dashboard.oauth_sign_in import ATTEMPTS_PER_MINUTE, STATE_SECONDS
from tests.host.dashboard.browsing import Browser
from tests.support.clock import Clock
from tests.support.host_server import Host
from tests.support.http_client import Headers
from tests.support.sign_in_authority import SignInAuthority, signing_in

START = "/dashboard/oauth/start"
CROSS_SITE: Headers = {"Cookie": None, "Sec-Fetch-Site": "cross-site"}
"""What a browser sends when another site leads it to us: no strict cookies."""


async def go(browser: Browser, to: str = "") -> str:
    """Go to the issuer, and return the address there."""
    if not browser.cookies:
        await browser.open("/")
    await browser.open(START + to, follows=False)
    assert browser.status == 303, browser.html
    return browser.headers["location"]


async def come_back(browser: Browser, address: str) -> str:
    """Come back from the issuer, and go on as the page there says."""
    assert urlsplit(address).path == "/dashboard/oauth/callback"
    await browser.open(address.partition(urlsplit(address).netloc)[2], CROSS_SITE)
    onward = re.search(r'http-equiv="refresh" content="0;url=([^"]+)"', browser.html)
    assert onward is not None
    return await browser.open(unescape(onward.group(1)))


async def sign_in(host: Host, issuer: SignInAuthority, to: str = "") -> tuple[Browser, str]:
    browser = Browser(host)
    return browser, await come_back(browser, issuer.consent(await go(browser, to)))


async def test_somebody_signs_in_at_the_issuer_and_looks(tmp_path: Path) -> None:
    async with signing_in(tmp_path) as (host, issuer):
        browser = Browser(host)
        assert f"Sign in with 127.0.0.1:{issuer.port}" in await browser.open("/")
        there = await go(browser)
        text = await come_back(browser, issuer.consent(there))

        assert ("The far side of alpha is there." in text, "oauth:alice" in text) == (True, True)
        asked = parse_qs(urlsplit(there).query)
        assert asked["redirect_uri"] == [f"http://127.0.0.1:{host.port}/dashboard/oauth/callback"]
        assert asked["scope"] == ["openid bridgehead:dashboard bridgehead:read"]
        assert host.logged("signed in")[0]["client"] == "oauth:alice"


async def test_the_page_that_a_browser_lands_on_sets_no_cookie_and_the_cookie_has_no_token(
    tmp_path: Path,
) -> None:
    async with signing_in(tmp_path) as (host, issuer):
        browser = Browser(host)
        back = issuer.consent(await go(browser))
        before = dict(browser.cookies)
        await browser.open("/dashboard/oauth/callback?" + urlsplit(back).query, CROSS_SITE)
        assert browser.cookies == before
        await come_back(browser, back)

        session = browser.cookies[f"bridgehead_token_{host.port}"]
        assert session.startswith("g2.")
        assert (await host.get("/metrics", {"Authorization": f"Bearer {session}"})).status == 401


async def test_whoever_looks_can_ask_to_act(tmp_path: Path) -> None:
    async with signing_in(tmp_path) as (host, issuer):
        browser, _ = await sign_in(host, issuer)
        assert "Sign in again to act" in await browser.open("/dashboard/clients")
        await browser.submit("/dashboard/revoke", {"name": "nobody"})
        assert browser.status == 403

        there = await go(browser, "?to=act")
        assert parse_qs(urlsplit(there).query)["scope"] == [
            "openid bridgehead:admin bridgehead:dashboard bridgehead"
        ]
        await come_back(browser, issuer.consent(there))
        assert "Sign in again to act" not in await browser.open("/dashboard/clients")
        await browser.submit("/dashboard/revoke", {"name": "nobody"})
        assert browser.status == 404  # may act, but there is no such token


async def test_a_sign_in_ends_with_its_access_token(tmp_path: Path) -> None:
    clock = Clock(time.time(), runs=True)
    async with signing_in(tmp_path, clock) as (host, issuer):
        browser, text = await sign_in(host, issuer)
        assert "oauth:alice" in text
        clock.advance(700)

        assert "Sign in with" in await browser.open("/dashboard/clients")


@pytest.mark.parametrize("place", range(3))
async def test_a_session_that_was_changed_opens_nothing(tmp_path: Path, place: int) -> None:
    async with signing_in(tmp_path) as (host, issuer):
        browser, _ = await sign_in(host, issuer)
        name = f"bridgehead_token_{host.port}"
        parts = browser.cookies[name].split(".")
        parts[place] = parts[place][:-2] + ("AA" if parts[place][-2:] != "AA" else "BB")
        browser.cookies[name] = ".".join(parts)

        assert "Sign in with" in await browser.open("/")


async def test_a_sign_in_that_began_in_another_browser_is_refused(tmp_path: Path) -> None:
    async with signing_in(tmp_path) as (host, issuer):
        mine, theirs = Browser(host), Browser(host)
        back = issuer.consent(await go(theirs))
        await mine.open("/")
        text = await come_back(mine, back)

        assert (mine.status, "did not begin in this browser" in text) == (403, True)
        assert issuer.redeemed == []
        assert host.logged("request rejected")[0]["reason"] == "oauth_state"


@pytest.mark.parametrize("state", ["", "x", "a.b.c", "a.1.b", "a.²³.b", "a.99999999999.b"])
async def test_a_state_that_is_not_ours_is_refused(tmp_path: Path, state: str) -> None:
    async with signing_in(tmp_path) as (host, issuer):
        browser = Browser(host)
        await come_back(browser, issuer.consent(await go(browser), state=state))

        assert (browser.status, issuer.redeemed) == (403, [])


async def test_a_sign_in_that_took_too_long_is_refused(tmp_path: Path) -> None:
    clock = Clock(time.time(), runs=True)
    async with signing_in(tmp_path, clock) as (host, issuer):
        browser = Browser(host)
        back = issuer.consent(await go(browser))
        clock.advance(STATE_SECONDS + 1)
        text = await come_back(browser, back)

        assert (browser.status, "took longer than 10 minutes" in text) == (403, True)


async def test_a_code_that_comes_again_is_refused(tmp_path: Path) -> None:
    async with signing_in(tmp_path) as (host, issuer):
        browser = Browser(host)
        back = issuer.consent(await go(browser))
        await come_back(browser, back)
        del browser.cookies[f"bridgehead_token_{host.port}"]
        text = await come_back(browser, back)

        assert (browser.status, "was used already" in text, len(issuer.redeemed)) == (400, True, 1)
        code = parse_qs(urlsplit(back).query)["code"][0]
        text = await come_back(browser, issuer.consent(await go(browser), code=code))
        assert (browser.status, "was used already" in text) == (400, True)


async def test_only_our_own_page_begins_a_sign_in(tmp_path: Path) -> None:
    async with signing_in(tmp_path) as (host, _):
        browser = Browser(host)
        assert "Sign in with" in await browser.open(START, CROSS_SITE)
        assert "Sign in with" in await browser.open(START, {"Sec-Fetch-Site": "same-site"})


async def test_whoever_comes_by_another_name_is_sent_to_the_public_one(tmp_path: Path) -> None:
    async with signing_in(tmp_path, BRIDGEHEAD_PUBLIC_URL="https://team.example") as (host, _):
        browser = Browser(host)
        assert await go(browser) == "https://team.example/"


@pytest.mark.parametrize(
    ("public", "headers"),
    [
        ("https://team.example", {"Host": "team.example"}),
        ("https://team.example:443", {"Referer": "https://team.example/dashboard/clients"}),
    ],
)
async def test_a_sign_in_comes_back_to_the_public_address_also_behind_a_proxy(
    tmp_path: Path, public: str, headers: Headers
) -> None:
    async with signing_in(tmp_path, BRIDGEHEAD_PUBLIC_URL=public) as (host, _):
        browser = Browser(host)
        await browser.open("/", headers)
        await browser.open(START, headers, follows=False)

        asked = parse_qs(urlsplit(browser.headers["location"]).query)
        assert asked["redirect_uri"] == ["https://team.example/dashboard/oauth/callback"]


async def test_codes_are_not_tried_without_end(tmp_path: Path) -> None:
    clock = Clock(time.time())  # a busy machine must not earn anybody more tries
    async with signing_in(tmp_path, clock) as (host, issuer):
        browser = Browser(host)
        for _ in range(ATTEMPTS_PER_MINUTE):
            await come_back(browser, issuer.consent(await go(browser), code="guess"))
            assert browser.status == 400
        text = await come_back(browser, issuer.consent(await go(browser), code="guess"))

        assert (browser.status, "Too many sign-ins" in text) == (429, True)


async def test_without_a_client_id_there_is_no_such_way(tmp_path: Path) -> None:
    async with signing_in(tmp_path, BRIDGEHEAD_OAUTH_CLIENT_ID="") as (host, _):
        assert "Sign in with 127" not in await Browser(host).open("/")
        for path in (START, "/dashboard/oauth/callback"):
            assert (await host.get(path)).status == 404


async def test_what_an_issuer_sends_along_is_text(tmp_path: Path) -> None:
    async with signing_in(tmp_path) as (host, issuer):
        browser = Browser(host)
        wrong = {"code": "", "error": "invalid_scope", "error_description": '"><script>alert(1)</script>'}
        text = await come_back(browser, issuer.consent(await go(browser), **wrong))

        assert (browser.status, "<script>alert" in browser.html) == (403, False)
        assert 'refused the sign-in: invalid_scope ("><script>alert(1)</script>)' in text
