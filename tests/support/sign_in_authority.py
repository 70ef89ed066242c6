"""An authorisation server that people sign in at: checks what it is asked as RFC 6749 and 7636 have it."""

import base64
import hashlib
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import msgspec

from tests.support.clock import Clock
from tests.support.fake_api import Answer, Request
from tests.support.host_authority import AUDIENCE, Authority, running
from tests.support.host_server import Host, hosting

CLIENT = "dashboard"


class SignInAuthority(Authority):
    """Gives codes to browsers and tokens to our host."""

    def __init__(self) -> None:
        super().__init__()
        self.secret = ""
        self.published: dict[str, Any] = {"scopes_supported": ["openid", "bridgehead"]}
        """Further metadata."""
        self.granted: str | None = None
        """The scopes that it gives, where it does not give what is asked for."""
        self.access: dict[str, Any] = {}
        """Claims of the access token that are not as usual."""
        self.identity: dict[str, Any] = {}
        """Claims of the id token that are not as usual."""
        self.answer: dict[str, Any] | None = None
        """What the token endpoint says in place of the truth."""
        self.redeemed: list[dict[str, str]] = []
        self._codes: dict[str, dict[str, str]] = {}

    def metadata(self) -> dict[str, Any]:
        ends = {name: f"{self.issuer}/{name}" for name in ("authorization_endpoint", "token_endpoint")}
        return {**super().metadata(), **ends, **self.published}

    # --- the page that a person sees -----------------------------------------------------------------------

    def consent(self, address: str, **instead: str) -> str:
        """Sign alice in at the address that a browser was sent to, and return where it is sent back to."""
        parts = urlsplit(address)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{self.issuer}/authorization_endpoint"
        assert (asked["response_type"], asked["client_id"]) == ("code", CLIENT)
        assert (asked["code_challenge_method"], asked["resource"]) == ("S256", AUDIENCE)
        code = secrets.token_urlsafe(8)
        self._codes[code] = asked
        answer = {"code": code, "state": asked["state"], "iss": self.issuer, **instead}
        return f"{asked['redirect_uri']}?{urlencode({key: value for key, value in answer.items() if value})}"

    # --- what our host asks --------------------------------------------------------------------------------

    def respond(self, request: Request) -> Answer:
        if request.path != "/realm/token_endpoint":
            return super().respond(request)
        if self.answer is not None:
            return Answer(int(self.answer.pop("status", 200)), msgspec.json.encode(self.answer))
        form = dict(parse_qsl(request.body.decode()))
        self.redeemed.append(form)
        if not self._knows(form, request.headers.get("authorization", "")):
            return Answer(401, b'{"error":"invalid_client"}')
        asked = self._codes.pop(form["code"], None)
        if asked is None or not _fits(form, asked):
            return Answer(400, b'{"error":"invalid_grant"}')
        return Answer(200, msgspec.json.encode(self._make_tokens(asked)))

    def _knows(self, form: dict[str, str], authorization: str) -> bool:
        pair = base64.b64encode(f"{CLIENT}:{self.secret}".encode()).decode()
        if self.secret and "client_secret_post" not in self.published.get(
            "token_endpoint_auth_methods_supported", ()
        ):
            return authorization == f"Basic {pair}" and "client_secret" not in form
        return form["client_id"] == CLIENT and form.get("client_secret", "") == self.secret

    def _make_tokens(self, asked: dict[str, str]) -> dict[str, str]:
        scope = self.granted if self.granted is not None else asked["scope"]
        made = {"access_token": self.token(**{"scope": scope, **self.access}), "token_type": "Bearer"}
        if "openid" in asked["scope"].split():
            claims = {"aud": CLIENT, "nonce": asked["nonce"], "iat": time.time(), "scope": None}
            made["id_token"] = self.token(**{**claims, **self.identity})
        return made


def _fits(form: dict[str, str], asked: dict[str, str]) -> bool:
    digest = hashlib.sha256(form["code_verifier"].encode()).digest()
    is_proved = base64.urlsafe_b64encode(digest).decode().rstrip("=") == asked["code_challenge"]
    is_here = form["redirect_uri"] == asked["redirect_uri"]
    return is_proved and is_here and form["grant_type"] == "authorization_code"


@asynccontextmanager
async def signing_in(
    folder: Path, clock: Clock | None = None, **settings: str
) -> AsyncIterator[tuple[Host, SignInAuthority]]:
    """Run a host at whose dashboard people sign in with an authorisation server."""
    async with running(SignInAuthority()) as issuer:
        environment = {
            "BRIDGEHEAD_OAUTH_ISSUER": issuer.issuer,
            "BRIDGEHEAD_OAUTH_AUDIENCE": AUDIENCE,
            "BRIDGEHEAD_OAUTH_CLIENT_ID": CLIENT,
            **settings,
        }
        async with hosting(folder, environment, clock=clock or Clock(time.time(), runs=True)) as host:
            yield host, issuer
