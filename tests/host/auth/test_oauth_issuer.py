"""The authorisation server of a host: new keys, an absence, a silence, and what is not believed of it."""

import time
from pathlib import Path

import pytest

from bridgehead.host.auth.jwks import FRESH_SECONDS, RETRY_SECONDS, USABLE_SECONDS
from tests.support.host_authority import AUDIENCE, RealClock, authority, guarded
from tests.support.host_server import bearer, hosting
from tests.support.waiting import until

pytestmark = pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")


async def test_a_new_key_is_fetched_but_not_for_every_unknown_one(tmp_path: Path) -> None:
    clock = RealClock()
    async with guarded(tmp_path, clock) as (host, issuer):
        assert (await host.try_call("/mcp", "alpha_echo", bearer(issuer.token()))).status == 200
        issuer.add_key("second", "ec")
        clock.ahead += RETRY_SECONDS
        assert (await host.try_call("/mcp", "alpha_echo", bearer(issuer.token(key="second")))).status == 200

        stranger = issuer.forget_key("first")
        fetched = len(issuer.asked)
        for number in range(5):
            token = issuer.token(key=f"unknown{number}", signer=stranger)
            assert (await host.try_call("/mcp", "alpha_echo", bearer(token))).status == 401
        assert len(issuer.asked) == fetched


async def test_an_issuer_that_is_away_for_a_while_locks_nobody_out(tmp_path: Path) -> None:
    clock = RealClock()
    async with guarded(tmp_path, clock) as (host, issuer):
        far_off = time.time() + 10 * USABLE_SECONDS
        assert (await host.try_call("/mcp", "alpha_echo", bearer(issuer.token(exp=far_off)))).status == 200
        issuer.is_there = False

        clock.ahead += FRESH_SECONDS + 1
        later = issuer.token(exp=far_off, jti="later")
        assert (await host.try_call("/mcp", "alpha_echo", bearer(later))).status == 200
        clock.ahead += USABLE_SECONDS
        latest = issuer.token(exp=far_off, jti="latest")
        response = await host.try_call("/mcp", "alpha_echo", bearer(latest))

        assert "keys cannot be fetched" in await host.refused(response, 503)
        assert host.logged("the keys could not be fetched")


async def test_metadata_of_another_issuer_are_not_believed(tmp_path: Path) -> None:
    async with authority() as issuer:
        settings = {
            "BRIDGEHEAD_OAUTH_ISSUER": f"http://localhost:{issuer.port}/realm",
            "BRIDGEHEAD_OAUTH_AUDIENCE": AUDIENCE,
        }
        async with hosting(tmp_path, settings, clock=RealClock()) as host:
            response = await host.try_call("/mcp", "alpha_echo", bearer(issuer.token()))
            assert response.status == 503
            assert "/realm/keys" not in issuer.asked


async def test_an_issuer_that_cannot_be_reached_is_said_so(tmp_path: Path) -> None:
    async with authority() as issuer:
        token = issuer.token()
    settings = {"BRIDGEHEAD_OAUTH_ISSUER": issuer.issuer, "BRIDGEHEAD_OAUTH_AUDIENCE": AUDIENCE}
    async with hosting(tmp_path, settings, clock=RealClock()) as host:
        response = await host.try_call("/mcp", "alpha_echo", bearer(token))
        assert "keys cannot be fetched" in await host.refused(response, 503)
        (line,) = host.logged("the keys could not be fetched")
        assert "cannot be fetched" in line["problem"]


async def test_an_issuer_that_hangs_delays_nobody_whose_key_is_known(tmp_path: Path) -> None:
    clock = RealClock()
    async with guarded(tmp_path, clock) as (host, issuer):
        far_off = time.time() + 10 * USABLE_SECONDS
        assert (await host.try_call("/mcp", "alpha_echo", bearer(issuer.token(exp=far_off)))).status == 200
        issuer.hangs = True
        clock.ahead += FRESH_SECONDS + 1

        asked = len(issuer.asked)
        for number in range(3):
            token = issuer.token(exp=far_off, jti=str(number))
            assert (await host.try_call("/mcp", "alpha_echo", bearer(token))).status == 200
        assert not host.logged("the keys could not be fetched")  # nobody waited for that
        issuer.hangs = False

        await until(lambda: "/realm/keys" in issuer.asked[asked:])  # refreshed beside
