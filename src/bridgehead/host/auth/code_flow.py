"""Code flow: the host as a client of its authorisation server (authorization code with PKCE).

Builds the requests to the issuer and validates its answers (RFC 6749, 7636, 8707 and 9207). Cookies, browser
sessions and the use of the access token are up to the dashboard.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

import msgspec
from msgspec import Struct

from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError, Unavailable
from bridgehead.runtime.http import Fetched
from bridgehead.runtime.timing import Clock

from .authenticator import InvalidToken
from .discovery import Fetch, Metadata, discover, is_secure, read_object
from .rejection import HostRejection

FRESH_SECONDS = 600.0
"""How long the issuer's metadata are cached."""
AWAY, DENIED, MISMATCH = "oauth", "oauth_denied", "oauth_mismatch"
"""Reasons: the issuer does not answer; it refuses; its answer is invalid."""
OPENID = "openid"
_OK = 200
_SERVER_ERROR = 500
_MAX_SHOWN = 200
"""Characters of the issuer's own text that messages and logs show."""
_ENDPOINTS = ("authorization_endpoint", "token_endpoint")
_BASIC, _POST = "client_secret_basic", "client_secret_post"

log = logs.logger("host.oauth")

VerifyIdToken = Callable[[str, str, str], Awaitable[None]]
"""Called with an id token, a client id and a nonce; raises InvalidToken."""


class OAuthClient(Struct, frozen=True):
    """This host as registered at the issuer."""

    id: str
    secret: str = ""


class CodeFlow:
    """Builds authorisation requests to one issuer and exchanges its codes for access tokens."""

    def __init__(
        self,
        issuer: str,
        client: OAuthClient,
        audience: str,
        clock: Clock,
        *,
        fetch: Fetch,
        post: Callable[[str, dict[str, str], dict[str, str]], Awaitable[Fetched]],
        verify_id_token: VerifyIdToken,
    ) -> None:
        self._issuer = issuer
        self._client = client
        self._resource = {"resource": audience} if "://" in audience else {}
        """Resource indicator (RFC 8707): an issuer may serve several resource servers."""
        self._now = clock.monotonic
        self._fetch = fetch
        self._post = post
        self._verify_id_token = verify_id_token
        self._known: tuple[float, Metadata] | None = None

    @property
    def issuer_name(self) -> str:
        """The issuer's host name, for people."""
        return urlsplit(self._issuer).netloc

    async def make_url(
        self, redirect_uri: str, scopes: Iterable[str], *, state: str, nonce: str, verifier: str
    ) -> str:
        """Return the URL of the authorisation request. Raises HostRejection."""
        about = await self._describe()
        has_openid = OPENID in about.scopes_supported
        query = {
            "response_type": "code",
            "client_id": self._client.id,
            "redirect_uri": redirect_uri,
            "scope": " ".join([*([OPENID] if has_openid else []), *scopes]),
            "state": state,
            "code_challenge": make_challenge(verifier),
            "code_challenge_method": "S256",
            **({"nonce": nonce} if has_openid else {}),
            **self._resource,
        }
        # RFC 6749, section 3.1: the endpoint may have a query of its own, which must be kept.
        separator = "&" if "?" in about.authorization_endpoint else "?"
        return f"{about.authorization_endpoint}{separator}{urlencode(query)}"

    async def redeem(self, answer: Mapping[str, str], redirect_uri: str, *, nonce: str, verifier: str) -> str:
        """Exchange the code of an authorisation response for an access token. Raises HostRejection."""
        about = await self._describe()
        # RFC 9207: an answer of another issuer (mix-up attack) is refused if either side supports `iss`.
        sender = answer.get("iss", "")
        if sender != self._issuer and (sender or about.authorization_response_iss_parameter_supported):
            raise self._reject_answer("the answer came from another issuer")
        if answer.get("error"):
            raise self._explain_refusal(answer)
        if not answer.get("code"):
            raise self._reject_answer("it sent neither a code nor an error")
        tokens = await self._exchange(about, answer["code"], redirect_uri, verifier)
        access, identity = tokens.get("access_token"), tokens.get("id_token")
        if not isinstance(access, str) or str(tokens.get("token_type", "bearer")).lower() != "bearer":
            raise self._reject_answer("it gave no access token")
        # The nonce in the id token ties the answer to this browser's sign-in (OpenID Connect Core, 3.1.3.7).
        if isinstance(identity, str):
            try:
                await self._verify_id_token(identity, self._client.id, nonce)
            except InvalidToken as problem:
                raise self._reject_answer(str(problem).rstrip(".")) from None
        return access

    async def _exchange(self, about: Metadata, code: str, redirect_uri: str, verifier: str) -> dict[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
            **self._resource,
        }
        headers: dict[str, str] = {}
        # In a header, which is RFC 8414's default, unless the issuer only knows `client_secret_post`.
        known = about.token_endpoint_auth_methods_supported
        if self._client.secret and (_BASIC in known or _POST not in known):
            # RFC 6749, section 2.3.1: id and secret are form-encoded before the base64.
            pair = f"{quote_plus(self._client.id)}:{quote_plus(self._client.secret)}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form["client_id"] = self._client.id
            if self._client.secret:
                form["client_secret"] = self._client.secret
        try:
            answer = await self._post(about.token_endpoint, form, headers)
        except Unavailable as failure:
            raise self._issuer_unreachable(failure) from failure
        try:
            tokens = read_object(answer.body)
        except msgspec.MsgspecError:
            tokens = {}
        if answer.status == _OK:
            return tokens
        if answer.status >= _SERVER_ERROR:
            raise self._issuer_unreachable(Unavailable(f"It answered with status {answer.status}."))
        raise self._explain_exchange(str(tokens.get("error", f"status {answer.status}")))

    async def _describe(self) -> Metadata:
        """Return the issuer's metadata; stale ones if it cannot be reached."""
        if self._known is not None and self._now() < self._known[0]:
            return self._known[1]
        try:
            metadata = await discover(self._issuer, self._fetch, _ENDPOINTS)
        except (BridgeError, msgspec.MsgspecError) as failure:
            if self._known is not None:
                return self._known[1]
            raise self._issuer_unreachable(failure) from failure
        # One gets the user's browser and the other the client secret.
        if not (is_secure(metadata.authorization_endpoint) and is_secure(metadata.token_endpoint)):
            raise self._reject_answer("its endpoints are not https:// addresses")
        self._known = (self._now() + FRESH_SECONDS, metadata)
        return metadata

    # --- failures ------------------------------------------------------------------------------------------

    def _issuer_unreachable(self, problem: Exception) -> HostRejection:
        log.warn("the authorisation server did not answer", issuer=self._issuer, problem=str(problem))
        message = (
            f"{self.issuer_name} cannot be reached right now. Try again in a minute, or sign in with a token."
        )
        return HostRejection(503, message, AWAY, headers=((b"retry-after", b"30"),))

    def _reject_answer(self, why: str) -> HostRejection:
        log.warn("an answer of the authorisation server was refused", issuer=self._issuer, problem=why)
        message = (
            f"The answer of {self.issuer_name} cannot be accepted: {why}. "
            "Sign in again. If it happens again, tell the operator of this server."
        )
        return HostRejection(502, message, MISMATCH)

    def _explain_refusal(self, answer: Mapping[str, str]) -> HostRejection:
        """Word an authorisation response that carries an error."""
        error, details = (answer.get(name, "")[:_MAX_SHOWN] for name in ("error", "error_description"))
        if error == "access_denied":
            message = (
                f"{self.issuer_name} did not give access: consent was denied, or your account has no right "
                "to it. Sign in again and agree, or ask the operator of the authorisation server."
            )
            return HostRejection(403, message, DENIED)
        cause = f"{error} ({details})" if details else error
        message = f"{self.issuer_name} refused the sign-in: {cause}. Tell the operator of this server."
        return HostRejection(403, message, DENIED)

    def _explain_exchange(self, error: str) -> HostRejection:
        """Word a failed exchange by its OAuth error code."""
        log.warn("the authorisation server refused a code", issuer=self._issuer, problem=error[:_MAX_SHOWN])
        if error == "invalid_grant":
            message = "This sign-in was used already, or took too long. Sign in again."
            return HostRejection(400, message, DENIED)
        if error == "invalid_client":
            message = (
                f"{self.issuer_name} does not accept this server as a client. Tell the operator of this "
                "server to check BRIDGEHEAD_OAUTH_CLIENT_ID and BRIDGEHEAD_OAUTH_CLIENT_SECRET."
            )
            return HostRejection(502, message, DENIED)
        message = f"{self.issuer_name} gave no token: {error[:_MAX_SHOWN]}. Tell the operator of this server."
        return HostRejection(502, message, DENIED)


def make_challenge(verifier: str) -> str:
    """Return the S256 code challenge of a verifier (RFC 7636)."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
