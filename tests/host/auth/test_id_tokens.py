"""Id tokens: what shows that a person has signed in here, just now, and nowhere else."""

import time
from typing import Any

import pytest

from bridgehead.host.auth.authenticator import InvalidToken
from bridgehead.host.auth.oauth import INVALID, LEEWAY_SECONDS
from tests.host.auth.test_oauth_tokens import Checked, token

NONCE = "n-0S6_WzA2Mj"


def id_token(header: dict[str, Any] | None = None, **claims: Any) -> str:
    return token(header=header, **{"aud": "dashboard", "nonce": NONCE, "iat": time.time(), **claims})


async def verify(made: str, checked: Checked | None = None) -> None:
    await (checked or Checked()).accepts.verify_id_token(made, "dashboard", NONCE)


@pytest.mark.parametrize("claims", [{}, {"azp": "dashboard"}, {"aud": ["dashboard", "other"]}])
async def test_an_id_token_for_this_client_and_this_sign_in_is_accepted(claims: dict[str, Any]) -> None:
    await verify(id_token(**claims))


async def test_an_id_token_that_ended_a_moment_ago_by_our_clock_is_accepted() -> None:
    await verify(id_token(exp=time.time() - LEEWAY_SECONDS / 2))


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        *(({name: None}, "not accepted: .*missing") for name in ("exp", "iat", "iss", "aud", "sub")),
        ({"iss": "https://issuer.example/other"}, "not accepted"),
        ({"aud": "other"}, "not accepted"),
        ({"exp": 1_000_000_000}, "not accepted: .*expired"),
        ({"exp": "soon"}, "not accepted"),
        ({"azp": "other"}, "for another sign-in"),
        ({"nonce": "another"}, "for another sign-in"),
        ({"nonce": None}, "for another sign-in"),
        ({"nonce": "\ud800"}, "for another sign-in"),
    ],
)
async def test_an_id_token_for_anything_else_is_refused(claims: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidToken, match=words) as problem:
        await verify(id_token(**claims))

    assert problem.value.reason == INVALID


async def test_an_id_token_must_be_signed_by_its_issuer() -> None:
    with pytest.raises(InvalidToken, match="a key that its issuer does not have"):
        await verify(id_token(header={"kid": "unknown"}))
    with pytest.raises(InvalidToken, match="not accepted: Signature"):
        await verify(id_token()[:-8] + "AAAAAAAA")


async def test_an_issuer_that_is_away_signs_nobody_in() -> None:
    checked = Checked()
    checked.is_there = False
    with pytest.raises(InvalidToken, match=r"not accepted: .*cannot be fetched"):
        await verify(id_token(), checked)
