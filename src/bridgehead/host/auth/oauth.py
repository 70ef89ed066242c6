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

import msgspec

from bridgehead.mcp.http.message import Response
from bridgehead.runtime.errors import BridgeError, Unavailable
from bridgehead.runtime.timing import Clock

from ..request import HostRequest
from ..routes import MCP_PATHS, RESOURCE
from .authenticator import EXPIRED, InvalidToken
from .discovery import Fetch
from .grants import EVERYTHING, OAUTH, Grant, read_scopes, supported_scopes
from .jwks import UNREADABLE, SigningKeys
from .rejection import HostRejection, reject_path

ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
"""Asymmetric algorithms only: `none` and shared secrets (HS256) let anyone forge a token."""
_TYPES = ("jwt", "at+jwt")
"""Accepted `typ` headers. Others mark tokens for other uses, such as logout tokens."""
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
_CLIENT_CLAIMS = ("client_id", "azp", "cid", "appid")
"""Where issuers name the client: RFC 9068, OpenID Connect, Okta, Entra."""


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
        per_minute: int = 0,
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
        self._public_url = (public_url or "").rstrip("/")
        self._base = resource_base(audience, public_url)
        self._per_minute = per_minute
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
        except (self._wrong, *UNREADABLE):
            raise InvalidToken("The token cannot be read.", INVALID) from None
        key_id, algorithm, kind = header.get("kid", ""), header.get("alg"), header.get("typ", "JWT")
        # Every member may be any JSON, also what cannot be looked up in a set.
        if not isinstance(key_id, str):
            raise InvalidToken("The token cannot be read.", INVALID)
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise InvalidToken("The token is signed in a way that is not accepted.", INVALID)
        if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in _TYPES:
            raise InvalidToken("The token is not an access token.", INVALID)
        return key_id, algorithm

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
        except UNREADABLE:
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
        except (self._wrong, Unavailable, *UNREADABLE) as problem:
            raise InvalidToken(f"The id token is not accepted: {problem}.", INVALID) from None
        is_ours = claims.get("azp", client_id) == client_id
        claimed = str(claims.get("nonce", "")).encode(errors="replace")  # JSON may hold lone surrogates
        if not is_ours or not hmac.compare_digest(claimed, nonce.encode()):
            raise InvalidToken("The id token is for another sign-in.", INVALID)

    def _make_grant(self, claims: dict[str, Any]) -> Grant:
        """Return the rights of checked claims; raises ValueError for any of another form."""
        subject = claims["sub"]
        if not isinstance(subject, str) or not subject:
            raise ValueError("sub")
        scope = claims.get("scope", claims.get("scp", ""))  # RFC 9068; Okta and Entra write `scp`
        scopes = scope.split() if isinstance(scope, str) else scope
        if not isinstance(scopes, list) or not all(isinstance(word, str) for word in scopes):
            raise ValueError("scope")
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
            name_caller(subject),
            full,
            reading,
            opened.metrics and is_for_all,
            opened.may_spend,
            self._per_minute,
            expires=float(claims["exp"]) + LEEWAY_SECONDS,
            events=opened.events and is_for_all,
            dashboard=opened.dashboard and is_for_all,
            admin=opened.admin and is_for_all,
            identity=self._identify(subject, claims),
        )

    def _identify(self, subject: str, claims: dict[str, Any]) -> str:
        """Name issuer, subject and client: a refreshed token has the same, and continues what it began."""
        client = next((claims[name] for name in _CLIENT_CLAIMS if isinstance(claims.get(name), str)), "")
        parts = (self._issuer, subject, client)
        return OAUTH + sha256(msgspec.json.encode(parts)).hexdigest()[:32]

    # --- metadata: where a client gets a token -------------------------------------------------------------

    def challenge_details(self, request: HostRequest) -> str:
        """Return the challenge parameter that names our metadata, where a client finds the issuer."""
        host = request.headers.get(b"host", b"").decode("latin-1")
        # The Host header ends up in a quoted header parameter: it must not end the quotes.
        own = f"{request.scheme}://{host}" if _HOST.fullmatch(host) else ""
        base = self._public_url or own
        if not self._base or not base:
            return ""
        prefix, _, last = request.path.rpartition("/")
        about = f"{prefix}/mcp" if f"/{last}" in MCP_PATHS else ""
        return f', resource_metadata="{base}{RESOURCE}{about}"'

    def describe_resource(self, request: HostRequest, bridge: str | None) -> Response:
        """Return the metadata of the resource at a path: who issues tokens for it (RFC 9728, section 3.3)."""
        if not self._base:
            # A client asks for a token for what it reads here, and nothing is sure to be accepted.
            raise reject_path(request.path)
        path = request.path.removeprefix(RESOURCE)
        resource = self._audience if not path and "://" in self._audience else f"{self._base}{path or '/mcp'}"
        about = {
            "resource": resource,
            "authorization_servers": [self._issuer],
            "scopes_supported": supported_scopes(self._bridges if bridge is None else (bridge,), bridge),
            "bearer_methods_supported": ["header"],
            "resource_name": "Bridgehead",
        }
        return Response.json(msgspec.json.encode(about))


def resource_base(audience: str, public_url: str | None) -> str:
    """Return the address before the paths of our resources; empty if neither setting tells it."""
    if public_url:
        return public_url.rstrip("/")
    return audience.rstrip("/").removesuffix("/mcp") if "://" in audience else ""


def accepted_audiences(
    audience: str, public_url: str | None, bridges: tuple[str, ...]
) -> dict[str, str | None]:
    """Return the configured audience and the addresses that our metadata name as resources.

    Each with its whole path: another service of the same machine has other tokens.
    """
    accepted: dict[str, str | None] = {}
    for base in {resource_base(audience, public_url), resource_base(audience, None)} - {""}:
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
