"""Sign-in: browser sessions of the dashboard. Owns their cookies and the CSRF proof of forms.

A browser sends a token once, in a form or through the authorisation server. The cookie never contains it. For
one of ours the cookie has its id and a seal (HMAC) that expires after some hours, or with the token. For an
access token it has the grant and its expiry, sealed as well. Each cookie has an id of its own. Signing out
stores that id in a nonce store, shared by all replicas, so a copy of the cookie opens nothing afterwards.

A form carries a proof made from two cookies and a key of ours. No other site can read or make one, and the
cookies are SameSite=Strict, so no other site can act for a person who is signed in.
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets
from urllib.parse import parse_qsl, urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bridgehead.mcp import OVERLOADED, Limits, MemoryNonces
from bridgehead.mcp.http.guard import check_length, read_body, whole_body
from bridgehead.runtime import logs
from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.stores import StoreError, StoreUnavailable
from bridgehead.runtime.timing import Clock

from ..auth.authenticator import Authenticator
from ..auth.grants import ANYONE, DASHBOARD_SCOPE, Grant
from ..auth.rejection import HostRejection
from ..auth.tokens import Tokens
from ..ownership.nonces import RedisNonces
from ..request import HostRequest

SESSION_SECONDS = 12 * 3600.0
FORM_TYPE = b"application/x-www-form-urlencoded"
OAUTH = "/dashboard/oauth/"
"""Path prefix of the sign-in at an authorisation server."""
PROOF = "csrf"
"""The form field of the CSRF proof."""
_FORM_LIMITS = Limits(message_bytes=256 * 1024, body_seconds=10.0)
_MAX_FIELDS = 200
_PAGE, _TOKEN = "bridgehead_page", "bridgehead_token"
_PORT = re.compile(rb":([0-9]{1,5})$")
_VALID_VALUE = re.compile(r"[A-Za-z0-9._~-]{1,4000}")
_SEAL, _GRANT = "s2", "g2"
"""Cookie formats: a token of ours, and the grant of an access token; a random id comes before the seal."""
_SEAL_PARTS, _GRANT_PARTS = 5, 4
_ENDED = "session "
"""Prefix of the nonce of an ended session; keeps it apart from other nonces in the store."""

Form = dict[str, str]

log = logs.logger("host.dashboard")


class BrowserSession(Struct):
    """The session of one browser request: its grant, the CSRF proof, and the cookies to set."""

    grant: Grant | None
    """None before signing in."""
    proof: str
    """The CSRF proof for the forms of the page."""
    cookies: list[tuple[bytes, bytes]]
    """Set-Cookie headers for the response."""
    page: str = ""
    """The random cookie of this browser; empty on its first request."""


class SignIn:
    """Identifies browsers, and signs people in and out."""

    def __init__(
        self,
        authenticator: Authenticator,
        tokens: Tokens | None,
        keys: tuple[bytes, ...],
        clock: Clock,
        *,
        ended: RedisNonces | MemoryNonces,
        public_url: str | None = None,
        issuer: str = "",
    ) -> None:
        self._ended = ended
        """The ids of sessions that were signed out, until they would have expired."""
        self._authenticator = authenticator
        self._tokens = tokens
        self._keys = keys
        self._clock = clock
        self._issuer = issuer
        """The issuer of accepted access tokens, with its audience; empty without OAuth."""
        self._public_host = urlsplit(public_url or "").netloc.lower()

    @property
    def is_needed(self) -> bool:
        """Whether the dashboard needs a token."""
        return self._authenticator.needs_token

    # --- cookies -------------------------------------------------------------------------------------------

    async def identify(self, request: HostRequest) -> BrowserSession:
        """Return the session of a browser. Raises HostRejection."""
        cookies = read_cookies(request)
        page, sealed = cookies.get(_PAGE, ""), cookies.get(_TOKEN, "")
        session = BrowserSession(None, "", [], page)
        if not page:
            page = secrets.token_urlsafe(16)
            session.cookies.append(make_cookie(request, _PAGE, page))
        session.proof = self._prove(self._keys[0], page, sealed)
        if not self.is_needed:
            session.grant = ANYONE
        elif sealed:
            parts = sealed.split(".")
            grant = self._read_grant(parts) if parts[0] == _GRANT else self._read_token(parts)
            has_expired = (
                grant is not None and grant.expires is not None and grant.expires <= self._clock.now()
            )
            is_open = grant is not None and not has_expired and not await self._has_ended(parts[-2])
            session.grant = grant if is_open else None
            if session.grant is not None and self._tokens is not None and session.grant.token_id:
                self._tokens.note_use(session.grant.token_id, self._clock.now())
            if session.grant is None:
                session.cookies.append(make_cookie(request, _TOKEN, ""))
        return session

    def _read_grant(self, parts: list[str]) -> Grant | None:
        if len(parts) != _GRANT_PARTS or not self._issuer:
            return None
        # The issuer is part of the seal, so a change of issuer or audience ends all browser sessions.
        seals = (make_digest(key, "grant", self._issuer, *parts[1:3]) for key in self._keys)
        if not any(hmac.compare_digest(seal, parts[3]) for seal in seals):
            return None
        padding = "=" * (-len(parts[1]) % 4)
        return msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + padding), type=Grant)

    def _read_token(self, parts: list[str]) -> Grant | None:
        entry = None if self._tokens is None or len(parts) != _SEAL_PARTS else self._tokens.find(parts[1])
        if entry is None or parts[0] != _SEAL or not parts[2].isdigit() or int(parts[2]) <= self._clock.now():
            return None
        # The hash of the secret is part of the seal: another token under the same id does not match it.
        seals = (self._seal(key, *parts[1:4], entry.hash) for key in self._keys)
        if not any(hmac.compare_digest(seal, parts[4]) for seal in seals):
            return None
        return entry.grant

    async def _check(self, request: HostRequest, token: str) -> Grant:
        """Check a token like that of an MCP caller: failures are counted, logged and limited by address."""
        headers = {b"authorization": b"Bearer " + token.encode("latin-1", "replace")}
        return await self._authenticator.check(headers, request.address, lambda: "")

    # --- signing in and out --------------------------------------------------------------------------------

    async def sign_in(self, request: HostRequest, token: str) -> tuple[Grant, tuple[bytes, bytes]]:
        """Check a token; return its grant and the session cookie. Raises HostRejection."""
        grant = await self._check(request, token.strip())
        if not grant.may_look:
            remedy = (
                "Ask the server's operator for one with --dashboard."
                if grant.token_id
                else f"Ask the operator of the authorisation server for the scope {DASHBOARD_SCOPE}."
            )
            raise HostRejection(403, f"This token does not open the dashboard. {remedy}", "grant")

        entry = None if self._tokens is None or not grant.token_id else self._tokens.find(grant.token_id)
        end, session_id = self._clock.now() + SESSION_SECONDS, secrets.token_urlsafe(12)
        if entry is None:
            # An access token cannot be looked up later, so the cookie carries its grant and expiry.
            limited = replace(grant, expires=min(end, grant.expires or end))
            encoded = _encode(msgspec.json.encode(limited))
            seal = make_digest(self._keys[0], "grant", self._issuer, encoded, session_id)
            value = f"{_GRANT}.{encoded}.{session_id}.{seal}"
        else:
            until = str(int(end))
            seal = self._seal(self._keys[0], grant.token_id, until, session_id, entry.hash)
            value = f"{_SEAL}.{grant.token_id}.{until}.{session_id}.{seal}"
        return grant, make_cookie(request, _TOKEN, value)

    async def sign_out(self, request: HostRequest, session: BrowserSession) -> list[tuple[bytes, bytes]]:
        """End the session for every copy of its cookie; return the headers that delete our cookies.

        Raises HostRejection if it cannot be ended everywhere.
        """
        sealed = read_cookies(request).get(_TOKEN, "")
        # Without a grant the seal is not ours, or the session has ended. Storing its id would let anybody
        # fill the store.
        if sealed and session.grant is not None:
            session_id = sealed.split(".")[-2]
            is_noted = await self._ended.use(_ENDED + session_id, self._clock.now() + SESSION_SECONDS)
            if not is_noted and not await self._has_ended(session_id):
                message = (
                    "You are still signed in: the end of the session cannot be stored. Try again in a moment."
                )
                raise HostRejection(503, message, "store", code=OVERLOADED)
        return [make_cookie(request, name, "") for name in (_TOKEN, _PAGE)]

    async def _has_ended(self, session_id: str) -> bool:
        try:
            return await self._ended.is_used(_ENDED + session_id)
        except (StoreUnavailable, StoreError, StorageError) as problem:
            # Open, because operators need the page most while a store is down.
            log.warn("it is not known whether a session was signed out elsewhere", problem=str(problem))
            return False

    # --- forms ---------------------------------------------------------------------------------------------

    async def read_form(self, request: HostRequest) -> Form:
        """Read a form that was sent from our page. Raises HostRejection."""
        # Also refuses pages of another port of this machine, which the cookies alone would let through:
        # browsers store cookies by host, not by port.
        own = {request.headers.get(b"host", b"").decode("latin-1").lower(), self._public_host} - {""}
        origin = request.headers.get(b"origin")
        site = request.headers.get(b"sec-fetch-site", b"same-origin")
        is_ours = origin is None or urlsplit(origin.decode("latin-1")).netloc.lower() in own
        if not is_ours or site not in {b"same-origin", b"none"}:
            raise HostRejection(403, "The form was sent by another page.", "csrf")
        http = request.http
        if http.headers.get(b"content-type", b"").split(b";")[0].strip().lower() != FORM_TYPE:
            raise HostRejection(415, "Send a form.", "content_type")
        if http.is_complete:
            body = whole_body(http, _FORM_LIMITS)
        else:
            check_length(http.headers, _FORM_LIMITS)
            body, _ = await read_body(http, _FORM_LIMITS)
        try:
            pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS)
        except ValueError:
            raise HostRejection(400, "The form cannot be read.", "form") from None
        form, cookies = dict(pairs), read_cookies(request)
        proof = form.pop(PROOF, "").encode()
        page, sealed = cookies.get(_PAGE, ""), cookies.get(_TOKEN, "")
        # Any of our keys: a page that was open while the keys were rotated still works.
        valid = (self._prove(key, page, sealed).encode() for key in self._keys)
        if not page or not any(hmac.compare_digest(expected, proof) for expected in valid):
            message = (
                "The page is too old, or cookies are switched off. Load it again and repeat what you did."
            )
            raise HostRejection(403, message, "csrf")
        return form

    def _prove(self, key: bytes, page: str, sealed: str) -> str:
        return make_digest(key, "form", page, sealed)

    def _seal(self, key: bytes, *parts: str) -> str:
        return make_digest(key, "session", *parts)


def make_digest(key: bytes, *parts: str) -> str:
    """Return the HMAC of the parts; the first names the purpose, for which alone the digest is valid."""
    return _encode(hmac.digest(key, "\0".join(parts).encode(errors="replace"), "sha256"))


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def read_cookies(request: HostRequest) -> dict[str, str]:
    """Return our cookies by their short names, without values that we never set."""
    cookies: dict[str, str] = {}
    names = {_full_name(request, name): name for name in (_PAGE, _TOKEN)}
    for pair in request.headers.get(b"cookie", b"").decode("latin-1").split(";"):
        name, _, value = pair.strip().partition("=")
        if name in names and _VALID_VALUE.fullmatch(value):
            cookies[names[name]] = value
    return cookies


def is_cross_site(request: HostRequest) -> bool:
    """Tell whether a link on another site led here, so that the browser withheld its strict cookies.

    False for the OAuth paths: a sign-in may only begin on our own page.
    """
    headers = request.headers
    return (
        request.method == "GET"
        and headers.get(b"sec-fetch-site") == b"cross-site"
        and headers.get(b"sec-fetch-dest") == b"document"
        and not request.path.startswith(OAUTH)
    )


def make_cookie(request: HostRequest, name: str, value: str) -> tuple[bytes, bytes]:
    """Return the header that sets a cookie until the browser closes; an empty value deletes it."""
    words = [f"{_full_name(request, name)}={value}", "Path=/", "HttpOnly", "SameSite=Strict"]
    if request.scheme == "https":
        words.append("Secure")
    if not value:
        words.append("Max-Age=0")
    return b"set-cookie", "; ".join(words).encode()


def _full_name(request: HostRequest, name: str) -> str:
    # Browsers store cookies by host and not by port, and several servers may run on one machine.
    match = _PORT.search(request.headers.get(b"host", b""))
    own = f"{name}_{match.group(1).decode()}" if match else name
    # Browsers accept __Host- only over https, without Domain: no subdomain can set our cookies (RFC 6265bis).
    return f"__Host-{own}" if request.scheme == "https" else own
