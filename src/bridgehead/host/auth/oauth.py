"""OAuth: the host as a resource server. Accepts the access tokens (JWT) of one authorisation server.

Checks signature, issuer, audience and expiry; scopes decide what is open. Publishes where a client gets a
token (RFC 9728). Needs the extra `oauth` (PyJWT with cryptography), which nothing else imports.
"""

from __future__ import annotations

import hmac
import re
from collections import OrderedDict
from collections.abc import Iterable
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bridgehead.mcp.http.message import Response
from bridgehead.runtime.errors import BridgeError, Unavailable
from bridgehead.runtime.timing import Clock

from ..request import HostRequest
from ..routes import RESOURCE
from .authenticator import EXPIRED, InvalidToken
from .discovery import Fetch
from .grants import EVERYTHING, Grant, read_scopes, supported_scopes
from .jwks import SigningKeys
from .rejection import HostRejection

ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
"""Asymmetric algorithms only: `none` and shared secrets (HS256) let anyone forge a token."""
_TYPES = ("jwt", "at+jwt")
"""Accepted `typ` headers. Others mark tokens for other uses, such as logout tokens."""
_UNREADABLE = (TypeError, ValueError, OverflowError, RecursionError, AttributeError)
"""Raised by claims that no issuer should make, such as an expiry of 400 digits."""
INVALID = "token_invalid"
LEEWAY_SECONDS = 30.0
"""How far the clocks of the issuer and this host may differ."""
REMEMBER_SECONDS = 60.0
"""How long a verified token is not verified again."""
_EXPIRED = "The token has expired. Get a new one from its issuer."
_MAX_REMEMBERED = 1024
_MAX_TOKEN = 16 * 1024
_PRINTABLE = re.compile(r"[\x21-\x7e]{1,100}")
_HOST = re.compile(r"[A-Za-z0-9.:\[\]-]{1,255}")


class OAuthIssuer:
    """One issuer of access tokens."""

    def __init__(
        self,
        issuer: str,
        audience: str,
        jwks_url: str | None,
        *,
        bridges: Iterable[str],
        public_url: str | None,
        clock: Clock,
        fetch: Fetch,
    ) -> None:
        try:
            import jwt
            import jwt.algorithms
        except ImportError as missing:
            raise _not_installed() from missing
        if not jwt.algorithms.has_crypto:
            raise _not_installed()
        self._decode = jwt.decode
        self._header = jwt.get_unverified_header
        self._wrong = jwt.exceptions.PyJWTError
        self._expired = jwt.exceptions.ExpiredSignatureError
        self._issuer = issuer
        self._audience = audience
        self._bridges = tuple(bridges)
        self._audiences = accepted_audiences(audience, public_url, self._bridges)
        """Accepted `aud` claims, each with the bridge that it limits the token to; None for all bridges."""
        self._public_url = public_url
        self._clock = clock
        self._keys = SigningKeys(issuer, jwks_url, clock, fetch)
        self._remembered: OrderedDict[bytes, tuple[Grant, float]] = OrderedDict()
        """Grants of verified tokens by digest, and until when: verifying takes longer than a whole call."""

    # --- tokens --------------------------------------------------------------------------------------------

    def recognizes(self, token: str) -> bool:
        """Recognize the form of a JWT."""
        return token.count(".") == 2  # noqa: PLR2004 - header, claims, signature

    async def check(self, token: str) -> Grant:
        """Check a token; fetch its key if it is not known yet."""
        digest = sha256(token.encode()).digest()
        remembered = self._remembered.get(digest)
        if remembered is not None and self._clock.monotonic() < remembered[1]:
            grant = remembered[0]
            if grant.expires is not None and grant.expires <= self._clock.now():
                raise InvalidToken(_EXPIRED, EXPIRED)
            return grant
        try:
            key = await self._keys.find(*self._read_header(token))
        except Unavailable as away:
            raise HostRejection(503, str(away), "oauth", headers=((b"retry-after", b"30"),)) from away
        if key is None:
            raise InvalidToken("The token is signed with a key that its issuer does not have.", INVALID)
        return self._verify(token, key, digest)

    def _read_header(self, token: str) -> tuple[str, str]:
        """Return the key id, empty if the token names none, and the algorithm."""
        if len(token) > _MAX_TOKEN:
            raise InvalidToken("The token is too long.", INVALID)
        try:
            header = self._header(token)
        except (self._wrong, *_UNREADABLE):
            raise InvalidToken("The token cannot be read.", INVALID) from None
        key_id, algorithm, kind = header.get("kid", ""), header.get("alg"), header.get("typ", "JWT")
        if algorithm not in ALGORITHMS:
            raise InvalidToken("The token is signed in a way that is not accepted.", INVALID)
        if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in _TYPES:
            raise InvalidToken("The token is not an access token.", INVALID)
        return str(key_id), algorithm

    def _verify(self, token: str, key: Any, digest: bytes) -> Grant:
        try:
            claims = self._decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                audience=list(self._audiences),
                issuer=self._issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
            grant = self._make_grant(claims)
        except self._expired:
            raise InvalidToken(_EXPIRED, EXPIRED) from None
        except self._wrong as problem:
            raise InvalidToken(f"The token is not accepted: {problem}.", INVALID) from None
        except _UNREADABLE:
            raise InvalidToken("The claims of the token cannot be read.", INVALID) from None
        self._remembered[digest] = (grant, self._clock.monotonic() + REMEMBER_SECONDS)
        if len(self._remembered) > _MAX_REMEMBERED:
            self._remembered.popitem(last=False)
        return grant

    async def verify_id_token(self, token: str, client_id: str, nonce: str) -> None:
        """Check that an id token was made for a client and for the sign-in with this nonce."""
        try:
            key = await self._keys.find(*self._read_header(token))
            if key is None:
                raise InvalidToken(
                    "The id token is signed with a key that its issuer does not have.", INVALID
                )
            claims = self._decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                audience=client_id,
                issuer=self._issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except (self._wrong, Unavailable, *_UNREADABLE) as problem:
            raise InvalidToken(f"The id token is not accepted: {problem}.", INVALID) from None
        is_ours = claims.get("azp", client_id) == client_id
        claimed = str(claims.get("nonce", "")).encode(errors="replace")  # JSON may hold lone surrogates
        if not is_ours or not hmac.compare_digest(claimed, nonce.encode()):
            raise InvalidToken("The id token is for another sign-in.", INVALID)

    def _make_grant(self, claims: dict[str, Any]) -> Grant:
        scope = claims.get("scope", claims.get("scp", ""))  # RFC 9068; Okta and Entra write `scp`
        scopes = scope.split() if isinstance(scope, str) else [str(word) for word in scope]
        opened = read_scopes(scopes, self._bridges)
        full, reading = opened.full, opened.reading
        # RFC 7519, section 4.1.3: `aud` is one string or a list of them.
        audience = [claims["aud"]] if isinstance(claims["aud"], str) else claims["aud"]
        bridges = {self._audiences[name] for name in audience if name in self._audiences}
        # Metrics, events and the dashboard are about all bridges, so they need a token for the whole host.
        is_for_all = None in bridges
        if not is_for_all:  # issued for single bridges, so its scopes open no others
            only = frozenset(bridge for bridge in bridges if bridge is not None)
            full = only if EVERYTHING in full else full & only
            reading = only if EVERYTHING in reading else reading & only
        return Grant(
            name_caller(str(claims["sub"])),
            full,
            reading,
            opened.metrics and is_for_all,
            opened.may_spend,
            expires=float(claims["exp"]) + LEEWAY_SECONDS,
            events=opened.events and is_for_all,
            dashboard=opened.dashboard and is_for_all,
            admin=opened.admin and is_for_all,
        )

    # --- metadata: where a client gets a token -------------------------------------------------------------

    def challenge_details(self, request: HostRequest) -> str:
        """Return the challenge parameter that names our metadata, where a client finds the issuer."""
        base = self._base(request)
        return f', resource_metadata="{base}{RESOURCE}{request.path}"' if base and request.path else ""

    def describe_resource(self, request: HostRequest, bridge: str | None) -> Response:
        """Return the metadata of the resource at a path: who issues tokens for it (RFC 9728, section 3.3)."""
        path = request.path.removeprefix(RESOURCE)
        base = self._base(request)
        is_whole = not path and "://" in self._audience
        about = {
            "resource": self._audience if is_whole else base + path,
            "authorization_servers": [self._issuer],
            "scopes_supported": supported_scopes(self._bridges if bridge is None else (bridge,), bridge),
            "bearer_methods_supported": ["header"],
            "resource_name": "Bridgehead",
        }
        return Response.json(msgspec.json.encode(about))

    def _base(self, request: HostRequest) -> str:
        if self._public_url:
            return self._public_url.rstrip("/")
        # The Host header ends up in a quoted header parameter: it must not end the quotes.
        host = request.headers.get(b"host", b"").decode("latin-1")
        return f"{request.scheme}://{host}" if _HOST.fullmatch(host) else ""


def accepted_audiences(
    audience: str, public_url: str | None, bridges: tuple[str, ...]
) -> dict[str, str | None]:
    """Return the configured audience and the addresses that our metadata name as resources."""
    accepted: dict[str, str | None] = {}
    for url in (public_url, audience):
        parts = urlsplit(url or "")
        if parts.scheme and parts.netloc:
            base = (url or "").rstrip("/") if url == public_url else f"{parts.scheme}://{parts.netloc}"
            accepted |= {f"{base}/{bridge}/mcp": bridge for bridge in bridges}
            accepted[f"{base}/mcp"] = None
    return {**accepted, audience: None}


def name_caller(subject: str) -> str:
    """Name a caller for limits and logs: never the name of one of our tokens, never with a line break."""
    # Names of our tokens contain no colon, so the prefix cannot collide with one.
    if _PRINTABLE.fullmatch(subject):
        return f"oauth:{subject}"
    return f"oauth:{sha256(subject.encode(errors='replace')).hexdigest()[:32]}"


def _not_installed() -> BridgeError:
    return BridgeError(
        "BRIDGEHEAD_OAUTH_ISSUER is set, but the packages that check its tokens are not installed.",
        next_step='Install it with pip install "bridgehead[oauth]", or unset the variable.',
    )
