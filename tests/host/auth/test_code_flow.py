"""The code flow: what is believed of an issuer's answers, and what a person is told when something is not."""

from pathlib import Path
from typing import Any

import pytest

from tests.host.dashboard.browsing import Browser
from tests.host.dashboard.test_oauth_sign_in import come_back, go, sign_in
from tests.support.sign_in_authority import signing_in


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("access_denied", "consent was denied, or your account has no right to it. Sign in again and agree"),
        ("server_error", "refused the sign-in: server_error. Tell the operator of this server."),
    ],
)
async def test_a_refusal_is_told_with_a_next_step(tmp_path: Path, error: str, words: str) -> None:
    async with signing_in(tmp_path) as (host, issuer):
        browser = Browser(host)
        text = await come_back(browser, issuer.consent(await go(browser), code="", error=error))

        assert (browser.status, words in text) == (403, True)
        assert "Sign in with 127.0.0.1" in text


async def test_an_answer_of_another_issuer_is_refused_and_so_is_one_that_does_not_say_whose_it_is(
    tmp_path: Path,
) -> None:
    async with signing_in(tmp_path) as (host, issuer):
        issuer.published["authorization_response_iss_parameter_supported"] = True
        for sender in ("https://evil.example", ""):
            browser = Browser(host)
            text = await come_back(browser, issuer.consent(await go(browser), iss=sender))
            assert (browser.status, "came from another issuer" in text) == (502, True)
        assert issuer.redeemed == []


async def test_an_issuer_that_never_names_itself_need_not(tmp_path: Path) -> None:
    async with signing_in(tmp_path) as (host, issuer):
        browser = Browser(host)
        assert "oauth:alice" in await come_back(browser, issuer.consent(await go(browser), iss=""))


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another"},
        {"azp": "another"},
        {"iss": "https://evil.example"},
        {"exp": 1},
        {"sub": None},
    ],
)
async def test_an_id_token_of_another_sign_in_is_refused(tmp_path: Path, claims: dict[str, Any]) -> None:
    async with signing_in(tmp_path) as (host, issuer):
        issuer.identity = claims
        browser, text = await sign_in(host, issuer)

        assert (browser.status, "cannot be accepted: The id token" in text) == (502, True)


async def test_without_openid_there_is_no_nonce_and_no_id_token(tmp_path: Path) -> None:
    async with signing_in(tmp_path) as (host, issuer):
        issuer.published["scopes_supported"] = ["bridgehead"]
        browser = Browser(host)
        there = await go(browser)
        assert ("openid" in there, "nonce" in there) == (False, False)
        assert "oauth:alice" in await come_back(browser, issuer.consent(there))


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        ({}, 502, "it gave no access token"),
        ({"access_token": "x", "token_type": "mac"}, 502, "it gave no access token"),
        ({"access_token": "opaque", "token_type": "Bearer"}, 401, "not one that is accepted here"),
        ({"status": 400, "error": "unauthorized_client"}, 502, "gave no token: unauthorized_client."),
        ({"status": 500}, 503, "cannot be reached right now. Try again in a minute"),
    ],
)
async def test_an_answer_without_a_token_of_ours_is_told(
    tmp_path: Path, answer: dict[str, Any], status: int, words: str
) -> None:
    async with signing_in(tmp_path) as (host, issuer):
        issuer.answer = answer
        browser, text = await sign_in(host, issuer)

        assert (browser.status, words in text) == (status, True)


async def test_a_user_without_the_scope_is_told_which_one(tmp_path: Path) -> None:
    async with signing_in(tmp_path) as (host, issuer):
        issuer.granted = "bridgehead:read"
        browser, text = await sign_in(host, issuer)

        assert browser.status == 403
        assert "Ask the operator of the authorisation server for the scope bridgehead:dashboard." in text


async def test_an_issuer_that_is_gone_is_told_before_and_after(tmp_path: Path) -> None:
    async with signing_in(tmp_path) as (host, issuer):
        browser = Browser(host)
        await browser.open("/")
        issuer.is_there = False
        text = await browser.open("/dashboard/oauth/start")
        assert (browser.status, "cannot be reached right now" in text) == (503, True)

        issuer.is_there = True
        back = issuer.consent(await go(browser))
        issuer.is_there = False
        assert "gave no token: status 404" in await come_back(browser, back)


@pytest.mark.parametrize("methods", [[], ["client_secret_post"], ["client_secret_basic", "private_key_jwt"]])
async def test_a_secret_is_shown_as_the_issuer_wants_it(tmp_path: Path, methods: list[str]) -> None:
    settings = {"BRIDGEHEAD_OAUTH_CLIENT_SECRET": "s3cret/with+signs"}
    async with signing_in(tmp_path, None, **settings) as (host, issuer):
        issuer.secret = "s3cret/with+signs" if methods == ["client_secret_post"] else "s3cret%2Fwith%2Bsigns"
        issuer.published["token_endpoint_auth_methods_supported"] = methods
        assert "oauth:alice" in (await sign_in(host, issuer))[1]


async def test_a_wrong_secret_is_told_to_whoever_runs_the_server(tmp_path: Path) -> None:
    settings = {"BRIDGEHEAD_OAUTH_CLIENT_SECRET": "wr0ng-s3cret"}
    async with signing_in(tmp_path, None, **settings) as (host, issuer):
        issuer.secret = settings["BRIDGEHEAD_OAUTH_CLIENT_SECRET"].upper()
        browser, text = await sign_in(host, issuer)

        assert (browser.status, "check BRIDGEHEAD_OAUTH_CLIENT_ID" in text) == (502, True)
        assert all("wr0ng-s3cret" not in str(line) for line in host.log)


async def test_a_browser_is_not_sent_to_an_address_that_is_not_secure(tmp_path: Path) -> None:
    async with signing_in(tmp_path) as (host, issuer):
        issuer.published["authorization_endpoint"] = "http://evil.example/"
        browser = Browser(host)
        await browser.open("/")
        text = await browser.open("/dashboard/oauth/start")

        assert (browser.status, "its endpoints are not https:// addresses" in text) == (502, True)
