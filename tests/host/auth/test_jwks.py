"""The keys of an issuer: withdrawn ones are gone, ones for something else are never used."""

import asyncio
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from bridgehead.host.auth.jwks import FRESH_SECONDS, RETRY_SECONDS, USABLE_SECONDS, SigningKeys
from bridgehead.runtime.errors import Unavailable
from tests.support.clock import Clock
from tests.support.waiting import until

PUBLIC = ec.generate_private_key(ec.SECP256R1()).public_key()


class Issuer:
    """Publishes what a test says, and counts how often it was asked."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.listed: list[Any] = []
        self.asked = 0
        self.keys = SigningKeys("https://issuer", "https://issuer/keys", self.clock, self._fetch)

    async def _fetch(self, _url: str) -> bytes:
        self.asked += 1
        return json.dumps({"keys": self.listed}).encode()


def key(name: str, **more: str) -> dict[str, Any]:
    made: dict[str, Any] = jwt.algorithms.ECAlgorithm.to_jwk(PUBLIC, as_dict=True)
    return {**made, "kid": name, "alg": "ES256", **more}


async def test_a_key_that_was_withdrawn_is_gone_after_the_next_fetch() -> None:
    issuer = Issuer()
    issuer.listed = [key("old"), key("new")]
    assert await issuer.keys.find("old", "ES256") is not None
    issuer.listed = [key("new")]
    for turn in (2, 3):
        issuer.clock.advance(FRESH_SECONDS + RETRY_SECONDS)
        await issuer.keys.find("new", "ES256")
        await until(lambda turn=turn: issuer.asked == turn)  # type: ignore[misc]
        await asyncio.sleep(0)

    assert await issuer.keys.find("old", "ES256") is None
    assert await issuer.keys.find("new", "ES256") is not None


async def test_keys_for_something_else_are_never_used() -> None:
    issuer = Issuer()
    issuer.listed = [key("signing", use="sig"), key("hiding", use="enc"), "nonsense", None]

    assert await issuer.keys.find("hiding", "ES256") is None
    assert await issuer.keys.find("signing", "ES256") is not None


async def test_a_listed_key_that_cannot_be_read_verifies_nothing() -> None:
    issuer = Issuer()
    issuer.listed = [key("broken", x="???"), key("good")]

    assert await issuer.keys.find("broken", "ES256") is None
    assert await issuer.keys.find("good", "ES256") is not None


@pytest.mark.parametrize(
    "listed", [[], [{}], [{"kty": []}], [{"kty": "oct", "k": "AAAA"}], "none", [key("broken", x="???")]]
)
async def test_a_list_without_a_usable_key_keeps_those_that_were_known(listed: Any) -> None:
    issuer = Issuer()
    issuer.listed = listed
    with pytest.raises(Unavailable, match="cannot be fetched"):
        await issuer.keys.find("old", "ES256")
    issuer.listed = [key("old")]
    issuer.clock.advance(RETRY_SECONDS)
    assert await issuer.keys.find("old", "ES256") is not None

    issuer.listed = listed
    issuer.clock.advance(FRESH_SECONDS)
    asked = issuer.asked
    assert await issuer.keys.find("old", "ES256") is not None
    await until(lambda: issuer.asked == asked + 1)
    assert await issuer.keys.find("old", "ES256") is not None
    assert await issuer.keys.find("unknown", "ES256") is None  # a 401: the keys are known


async def test_keys_are_not_fetched_without_encryption() -> None:
    asked = []

    async def fetch(url: str) -> bytes:
        asked.append(url)
        return json.dumps({"issuer": "https://issuer", "jwks_uri": "http://issuer.example/keys"}).encode()

    with pytest.raises(Unavailable):
        await SigningKeys("https://issuer", None, Clock(), fetch).find("one", "ES256")
    assert asked == ["https://issuer/.well-known/oauth-authorization-server"]


async def test_keys_that_cannot_be_renewed_are_used_for_a_day() -> None:
    issuer = Issuer()
    issuer.listed = [key("one")]
    await issuer.keys.find("one", "ES256")
    issuer.listed = []
    issuer.clock.advance(USABLE_SECONDS)
    assert await issuer.keys.find("one", "ES256") is not None
    assert await issuer.keys.find("one", "ES256") is not None
    issuer.clock.advance(1)
    with pytest.raises(Unavailable):
        await issuer.keys.find("one", "ES256")


@pytest.mark.parametrize("path", ["", "/", "/realm", "/realm/"])
@pytest.mark.parametrize("is_openid", [False, True])
async def test_where_the_keys_are_is_found_in_both_places(path: str, *, is_openid: bool) -> None:
    name = f"https://issuer.example{path}"
    bare = path.rstrip("/")
    where = (
        f"https://issuer.example{bare}/.well-known/openid-configuration"
        if is_openid
        else f"https://issuer.example/.well-known/oauth-authorization-server{bare}"
    )
    pages = {
        where: {"issuer": name, "jwks_uri": "https://keys.example/1"},
        "https://keys.example/1": {"keys": [key("one")]},
    }

    async def fetch(url: str) -> bytes:
        if url not in pages:
            raise Unavailable("There is nothing.")
        return json.dumps(pages[url]).encode()

    assert await SigningKeys(name, None, Clock(), fetch).find("one", "ES256") is not None


async def test_of_keys_without_a_name_the_one_of_the_right_curve_is_taken() -> None:
    issuer = Issuer()
    curves = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
    for curve in curves.values():
        public = ec.generate_private_key(curve).public_key()
        issuer.listed.append(jwt.algorithms.ECAlgorithm.to_jwk(public, as_dict=True))

    assert [await issuer.keys.find("", algorithm) is not None for algorithm in curves] == [True] * 3
    assert await issuer.keys.find("", "RS256") is None


async def test_keys_are_fetched_again_when_they_are_no_longer_fresh_and_not_before() -> None:
    issuer = Issuer()
    issuer.listed = [key("one")]
    await issuer.keys.find("one", "ES256")
    issuer.clock.advance(FRESH_SECONDS - 1)
    assert await issuer.keys.find("one", "ES256") is not None
    for _ in range(9):
        await asyncio.sleep(0)
    assert issuer.asked == 1

    issuer.clock.advance(1)
    assert await issuer.keys.find("one", "ES256") is not None
    await until(lambda: issuer.asked == 2)


async def test_an_unknown_key_is_asked_for_every_half_minute() -> None:
    issuer = Issuer()
    issuer.listed = [key("one")]
    await issuer.keys.find("one", "ES256")
    for seconds, asked in ((RETRY_SECONDS - 1, 1), (1, 2)):
        issuer.clock.advance(seconds)
        assert await issuer.keys.find("two", "ES256") is None
        assert issuer.asked == asked
