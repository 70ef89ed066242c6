"""Discovery: what an issuer publishes is found in either place, and believed only of itself."""

import asyncio
import json
from pathlib import Path

import pytest

from bridgehead.host.auth.discovery import discover, fetch, is_secure, post
from bridgehead.runtime.errors import Unavailable
from bridgehead.runtime.http import Proxies
from tests.support.fake_api import Answer, Request, fake_api
from tests.support.tcp import serving

ISSUER = "https://issuer.example/realm"
OAUTH = "https://issuer.example/.well-known/oauth-authorization-server/realm"
OPENID = "https://issuer.example/realm/.well-known/openid-configuration"


class Published:
    """Documents by their address."""

    def __init__(self, **documents: object) -> None:
        self.documents = {{"oauth": OAUTH, "openid": OPENID}[name]: said for name, said in documents.items()}

    async def fetch(self, url: str) -> bytes:
        if url not in self.documents:
            raise Unavailable(f"{url} answered with status 404.")
        return json.dumps(self.documents[url]).encode()


ABOUT = {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys", "scopes_supported": ["openid", 3]}


@pytest.mark.parametrize("place", ["oauth", "openid"])
async def test_metadata_are_found_in_either_place(place: str) -> None:
    found = await discover(ISSUER, Published(**{place: ABOUT}).fetch, ("jwks_uri",))

    assert (found.jwks_uri, found.scopes_supported) == (f"{ISSUER}/keys", frozenset({"openid"}))


async def test_a_document_without_what_is_needed_is_passed_over() -> None:
    full = {**ABOUT, "token_endpoint": f"{ISSUER}/token"}
    found = await discover(ISSUER, Published(oauth=ABOUT, openid=full).fetch, ("token_endpoint",))

    assert found.token_endpoint == f"{ISSUER}/token"


@pytest.mark.parametrize("said", [{**ABOUT, "issuer": "https://issuer.example"}, {"issuer": ISSUER}, [], "x"])
async def test_a_document_about_another_issuer_or_about_nothing_is_not_believed(said: object) -> None:
    with pytest.raises(Exception, match=r"not about https://issuer\.example/realm|404"):
        await discover(ISSUER, Published(oauth=said).fetch, ("jwks_uri",))


@pytest.mark.parametrize(
    ("url", "is_so"),
    [
        ("https://issuer.example/authorize?a=b", True),
        ("http://127.0.0.1:8080/authorize", True),
        ("http://issuer.example/authorize", False),
        ("javascript:alert(1)", False),
        ("https://issuer.example/\r\nset-cookie:a=b", False),
        ("", False),
    ],
)
def test_a_browser_is_sent_only_where_nobody_listens_in(url: str, *, is_so: bool) -> None:
    assert is_secure(url) is is_so


async def test_keys_are_never_read_from_a_file_of_the_host_nor_where_an_issuer_sends_one_to(
    tmp_path: Path,
) -> None:
    here = tmp_path / "keys.json"
    here.write_text("{}")
    with pytest.raises(Unavailable, match="not a web address"):
        await fetch(here.as_uri(), Proxies())

    async def moved(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n")

    async with serving(moved) as port:
        with pytest.raises(Unavailable, match="302"):
            await fetch(f"http://127.0.0.1:{port}/keys", Proxies())


async def test_a_form_is_posted_and_what_is_answered_comes_back_whatever_the_status() -> None:
    async def refuse(_request: Request) -> Answer:
        return Answer(400, b"{}")

    async with fake_api(refuse) as api:
        answer = await post(f"{api.url}/token?a=b", {"code": "%&"}, {"X-A": "1"}, Proxies())

    (heard,) = api.requests
    assert (answer.status, answer.body) == (400, b"{}")
    assert (heard.method, heard.path, heard.body) == ("POST", "/token?a=b", b"code=%25%26")
    assert heard.headers["x-a"] == "1"
