"""The official Python client, which finds its way to a token: `python -m tests.interop.oauth_client URL`.

Prints, as JSON, the scope that it asked for, the claims of its token, and the answer to a call with it.
"""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
import jwt
from mcp.client import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

REDIRECT = "http://127.0.0.1:9/callback"
SECONDS = 30.0
_MOST_REDIRECTS = 10


class Storage:
    """Remembers what the client was given."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Browser:
    """Follows the identity server's pages to where it hands out a code, as a browser would."""

    def __init__(self) -> None:
        self.asked: dict[str, list[str]] = {}
        self._answer: dict[str, list[str]] = {}

    async def open(self, url: str) -> None:
        self.asked = parse_qs(urlsplit(url).query)
        async with httpx2.AsyncClient(timeout=SECONDS) as http:
            for _ in range(_MOST_REDIRECTS):
                if url.startswith(REDIRECT):
                    break
                response = await http.get(url)
                assert response.is_redirect, (response.status_code, response.text[:300])
                url = urljoin(url, response.headers["location"])
        self._answer = parse_qs(urlsplit(url).query)

    async def answer(self) -> AuthorizationCodeResult:
        found = {name: values[0] for name, values in self._answer.items()}
        return AuthorizationCodeResult(**{k: v for k, v in found.items() if k in ("code", "state", "iss")})


async def main(url: str) -> None:
    storage, browser = Storage(), Browser()
    metadata = OAuthClientMetadata.model_validate(
        {"redirect_uris": [REDIRECT], "client_name": "interop", "token_endpoint_auth_method": "none"}
    )
    auth = OAuthClientProvider(url, metadata, storage, browser.open, browser.answer)
    async with (
        httpx2.AsyncClient(auth=auth, timeout=SECONDS) as http,
        Client(streamable_http_client(url, http_client=http), read_timeout_seconds=SECONDS) as client,
    ):
        added = await client.call_tool("add", {"a": 2, "b": 3})
    assert storage.tokens is not None
    claims = jwt.decode(storage.tokens.access_token, options={"verify_signature": False})
    told = {"asked": browser.asked, "claims": claims, "answer": added.structured_content}
    print(json.dumps(told))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
