"""Sign-in: who looks at the dashboard. Owns its cookies, and the proof that a form was filled in on our page.

Somebody shows a token once, as a form or by way of the authorisation server. The cookie never has the token
in it. One of ours it names by its id, with a seal that holds for some hours and only as long as the token
does. Of an access token it has what that opens and until when, sealed as well.

A form carries a proof made from two cookies and a key of ours. No other page can read it or make one, so no
other page can act for whoever is signed in; the cookies stay home anyway (SameSite=Strict).
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

from bridgehead.mcp import Limits
from bridgehead.mcp.http.guard import check_length, read_body, whole_body
from bridgehead.runtime.timing import Clock

from ..auth.authenticator import Authenticator
from ..auth.grants import DASHBOARD_SCOPE, Grant
from ..auth.rejection import HostRejection
from ..auth.tokens import Tokens
from ..request import HostRequest

SESSION_SECONDS = 12 * 3600.0
FORM_TYPE = b"application/x-www-form-urlencoded"
OAUTH = "/dashboard/oauth/"
"""What the paths of a sign-in at an authorisation server begin with."""
PROOF = "csrf"
"""The field of a form that carries the proof."""
_FORM_LIMITS = Limits(message_bytes=256 * 1024, body_seconds=10.0)
_MOST_FIELDS = 200
_PAGE, _TOKEN = "bridgehead_page", "bridgehead_token"
_PORT = re.compile(rb":([0-9]{1,5})$")
_GOOD = re.compile(r"[A-Za-z0-9._~-]{1,4000}")
_SEAL, _GRANT = "s1", "g1"
"""What the cookie of a token of ours begins with, and that of an access token."""
_SEAL_PARTS, _GRANT_PARTS = 4, 3

Form = dict[str, str]


class BrowserSession(Struct):
    """Somebody who looks."""

    grant: Grant | None
    """What is open; None where they have not signed in."""
    proof: str
    """What their forms carry."""
    cookies: list[tuple[bytes, bytes]]
    """Headers that set what they have to bring along."""
    page: str = ""
    """What tells their browser from others; empty where it has not brought it along yet."""


class SignIn:
    """Tells who looks, and lets people in and out."""

    def __init__(
        self,
        authenticator: Authenticator,
        tokens: Tokens | None,
        keys: tuple[bytes, ...],
        clock: Clock,
        public_url: str | None,
        issuer: str = "",
    ) -> None:
        self._authenticator = authenticator
        self._tokens = tokens
        self._keys = keys
        self._clock = clock
        self._issuer = issuer
        """Whose access tokens are accepted; empty where nobody's are."""
        self._public_host = urlsplit(public_url or "").netloc.lower()

    @property
    def is_needed(self) -> bool:
        """Whether somebody has to show who they are."""
        return self._authenticator.needs_token

    # --- who it is -----------------------------------------------------------------------------------------

    async def identify(self, request: HostRequest) -> BrowserSession:
        """Find out who looks. Raises HostRejection where a token is no longer accepted."""
        cookies = read_cookies(request)
        page, shown = cookies.get(_PAGE, ""), cookies.get(_TOKEN, "")
        session = BrowserSession(None, "", [], page)
        if not page:
            page = secrets.token_urlsafe(16)
            session.cookies.append(make_cookie(request, _PAGE, page))
        session.proof = self._prove(self._keys[0], page, shown)
        if not self.is_needed:
            session.grant = await self._check(request, "")
        elif shown:
            session.grant = self._open(shown)
            if session.grant is None:
                session.cookies.append(make_cookie(request, _TOKEN, ""))
        return session

    def _open(self, shown: str) -> Grant | None:
        """Return what a cookie opens, if it still does."""
        parts = shown.split(".")
        grant = self._open_grant(parts) if parts[0] == _GRANT else self._open_token(parts)
        has_ended = grant is None or (grant.expires is not None and grant.expires <= self._clock.now())
        return None if has_ended else grant

    def _open_grant(self, parts: list[str]) -> Grant | None:
        if len(parts) != _GRANT_PARTS or not self._issuer:
            return None
        seals = (make_digest(key, "grant", self._issuer, parts[1]) for key in self._keys)
        if not any(hmac.compare_digest(one, parts[2]) for one in seals):
            return None
        return msgspec.json.decode(_decode(parts[1]), type=Grant)

    def _open_token(self, parts: list[str]) -> Grant | None:
        found = None if self._tokens is None or len(parts) != _SEAL_PARTS else self._tokens.find(parts[1])
        if found is None or parts[0] != _SEAL or not parts[2].isdigit() or int(parts[2]) <= self._clock.now():
            return None
        sealed = (self._seal(key, parts[1], parts[2], found[0]) for key in self._keys)
        if not any(hmac.compare_digest(one, parts[3]) for one in sealed):
            return None
        return found[1]

    async def _check(self, request: HostRequest, token: str) -> Grant:
        """Check a token as that of any caller is: counted, logged, and limited for each address."""
        headers = {b"authorization": b"Bearer " + token.encode("latin-1", "replace")}
        grant = self._authenticator.check(headers, request.address, lambda: "")
        return grant if isinstance(grant, Grant) else await grant

    # --- in and out ----------------------------------------------------------------------------------------

    async def sign_in(self, request: HostRequest, token: str) -> tuple[Grant, tuple[bytes, bytes]]:
        """Check a token that somebody shows; return what it opens and the cookie. Raises HostRejection."""
        grant = await self._check(request, token.strip())
        if not grant.may_look:
            remedy = (
                "Ask whoever runs the server for one with --dashboard."
                if grant.token_id
                else f"Ask whoever runs the authorisation server for the scope {DASHBOARD_SCOPE}."
            )
            raise HostRejection(403, f"This token does not open the dashboard. {remedy}", "grant")
        return grant, make_cookie(request, _TOKEN, self._make_session(grant))

    def _make_session(self, grant: Grant) -> str:
        found = None if self._tokens is None or not grant.token_id else self._tokens.find(grant.token_id)
        end = self._clock.now() + SESSION_SECONDS
        if found is None:
            kept = replace(grant, expires=min(end, grant.expires or end))
            encoded = _encode(msgspec.json.encode(kept))
            return f"{_GRANT}.{encoded}.{make_digest(self._keys[0], 'grant', self._issuer, encoded)}"
        until = str(int(end))
        seal = self._seal(self._keys[0], grant.token_id, until, found[0])
        return f"{_SEAL}.{grant.token_id}.{until}.{seal}"

    def sign_out(self, request: HostRequest) -> list[tuple[bytes, bytes]]:
        """Return the headers that make a browser forget."""
        return [make_cookie(request, name, "") for name in (_TOKEN, _PAGE)]

    # --- forms ---------------------------------------------------------------------------------------------

    async def read_form(self, request: HostRequest) -> Form:
        """Read a form that was filled in on our page. Raises HostRejection."""
        self._check_origin(request)
        http = request.http
        if http.headers.get(b"content-type", b"").split(b";")[0].strip().lower() != FORM_TYPE:
            raise HostRejection(415, "Send a form.", "content_type")
        if http.is_complete:
            body = whole_body(http, _FORM_LIMITS)
        else:
            check_length(http.headers, _FORM_LIMITS)
            body = await read_body(http, _FORM_LIMITS)
        try:
            pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        except ValueError:
            raise HostRejection(400, "The form cannot be read.", "form") from None
        form = dict(pairs)
        self._check_proof(request, form.pop(PROOF, ""))
        return form

    def _check_origin(self, request: HostRequest) -> None:
        """Refuse what another page sends, also one that is on this machine or a neighbour's port."""
        own = {request.headers.get(b"host", b"").decode("latin-1").lower(), self._public_host} - {""}
        origin = request.headers.get(b"origin")
        site = request.headers.get(b"sec-fetch-site", b"same-origin")
        is_ours = origin is None or urlsplit(origin.decode("latin-1")).netloc.lower() in own
        if not is_ours or site not in {b"same-origin", b"none"}:
            raise HostRejection(403, "The form was sent by another page.", "csrf")

    def _check_proof(self, request: HostRequest, given: str) -> None:
        cookies = read_cookies(request)
        page, shown = cookies.get(_PAGE, ""), cookies.get(_TOKEN, "")
        proofs = (self._prove(key, page, shown).encode() for key in self._keys)
        if not page or not any(hmac.compare_digest(one, given.encode()) for one in proofs):
            message = (
                "The page is too old, or cookies are switched off. Load it again and repeat what you did."
            )
            raise HostRejection(403, message, "csrf")

    def _prove(self, key: bytes, page: str, shown: str) -> str:
        return make_digest(key, "form", page, shown)

    def _seal(self, key: bytes, token_id: str, until: str, token_hash: str) -> str:
        return make_digest(key, "session", token_id, until, token_hash)


def make_digest(key: bytes, *parts: str) -> str:
    """Make what only whoever has the key can make of the same parts; the first says what it is for."""
    return _encode(hmac.digest(key, "\0".join(parts).encode(errors="replace"), "sha256"))


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def read_cookies(request: HostRequest) -> dict[str, str]:
    """Return the cookies that are ours, by their short names; what could not be ours is not there."""
    found: dict[str, str] = {}
    names = {_full_name(request, name): name for name in (_PAGE, _TOKEN)}
    for pair in request.headers.get(b"cookie", b"").decode("latin-1").split(";"):
        name, _, value = pair.strip().partition("=")
        if name in names and _GOOD.fullmatch(value):
            found[names[name]] = value
    return found


def is_cross_site(request: HostRequest) -> bool:
    """Tell whether a link on another site led to a page, so that the browser keeps its cookies back.

    Not where a sign-in begins, which is for our own page to do.
    """
    headers = request.headers
    return (
        request.method == "GET"
        and headers.get(b"sec-fetch-site") == b"cross-site"
        and headers.get(b"sec-fetch-dest") == b"document"
        and not request.path.startswith(OAUTH)
    )


def make_cookie(request: HostRequest, name: str, value: str) -> tuple[bytes, bytes]:
    """Make the header that sets a cookie until the browser ends; an empty value takes it back."""
    words = [f"{_full_name(request, name)}={value}", "Path=/", "HttpOnly", "SameSite=Strict"]
    if request.scheme == "https":
        words.append("Secure")
    if not value:
        words.append("Max-Age=0")
    return b"set-cookie", "; ".join(words).encode()


def _full_name(request: HostRequest, name: str) -> str:
    # Browsers keep cookies by host and not by port, and several hosts may run on one machine.
    found = _PORT.search(request.headers.get(b"host", b""))
    own = f"{name}_{found.group(1).decode()}" if found else name
    return f"__Host-{own}" if request.scheme == "https" else own
