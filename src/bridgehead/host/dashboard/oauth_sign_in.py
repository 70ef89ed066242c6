"""OAuth sign-in: sends a browser to the authorisation server and takes it back, once and in the same browser.

The session's cookies are SameSite=Strict, so a browser does not bring them along when another site sends it
back. So the address that the issuer knows answers with a page that goes on by itself to one of ours, and
that step, which our own page makes, has the cookies.

Nothing is kept meanwhile. The state is sealed with a key of ours over the cookie that tells browsers apart;
PKCE's verifier and the nonce are derived from the same, so they never leave the server, and any worker or
replica can finish what another began. Each state is used once.
"""

from __future__ import annotations

import hmac
import inspect
import secrets
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Protocol
from urllib.parse import urlsplit

from bridgehead.runtime import logs
from bridgehead.runtime.http import Proxies
from bridgehead.runtime.timing import Clock

from ..auth.code_flow import Client, CodeFlow, VerifyIdToken
from ..auth.discovery import fetch, post
from ..auth.grants import ADMIN_SCOPE, DASHBOARD_SCOPE, SCOPE
from ..auth.rejection import HostRejection, reject_rate
from ..auth.throttle import Throttle
from ..request import HostRequest
from ..settings import HostSettings
from . import layout
from .html import link
from .sign_in import make_digest

STATE_SECONDS = 600.0
"""How long somebody may take at the authorisation server."""
ATTEMPTS_PER_MINUTE = 20
"""Codes that one address may have exchanged: each is a request to the issuer."""
LOOK_SCOPES = (DASHBOARD_SCOPE, f"{SCOPE}:read")
ACT_SCOPES = (ADMIN_SCOPE, DASHBOARD_SCOPE, SCOPE)
ANSWER = ("code", "state", "iss", "error", "error_description")
"""What an issuer sends along."""
_MOST_ANSWER = 8192
_STATE_PARTS = 3
_OWN_SITES = (b"same-origin", b"none")


class NonceStore(Protocol):
    """Remembers what was used, over all processes that could see it again."""

    def use(self, nonce: str, expires: float) -> bool | Awaitable[bool]:
        """Tell whether something is used for the first time."""


class OAuthSignIn:
    """The way to the issuer and back."""

    def __init__(
        self, flow: CodeFlow, keys: tuple[bytes, ...], clock: Clock, public_url: str | None, used: NonceStore
    ) -> None:
        self._flow = flow
        self._keys = keys
        self._clock = clock
        self._public_url = (public_url or "").rstrip("/")
        self._used = used
        self._attempts = Throttle(clock.monotonic)

    @property
    def issuer_name(self) -> str:
        """Where people sign in."""
        return self._flow.issuer_name

    async def begin(self, request: HostRequest, page: str, *, acts: bool) -> str:
        """Return where the browser that has the cookie `page` goes to sign in. Raises HostRejection."""
        base = self._base(request)
        if not _is_at(request, base):  # it would come back to a name that has no cookies
            return base + layout.OVERVIEW
        if not page or request.headers.get(b"sec-fetch-site", b"none") not in _OWN_SITES:
            return layout.OVERVIEW  # only our own page begins
        key, flow_id = self._keys[0], secrets.token_urlsafe(16)
        until = str(int(self._clock.now() + STATE_SECONDS))
        return await self._flow.make_url(
            base + layout.OAUTH_CALLBACK,
            ACT_SCOPES if acts else LOOK_SCOPES,
            state=f"{flow_id}.{until}.{make_digest(key, 'state', flow_id, until, page)}",
            nonce=make_digest(key, "nonce", flow_id, page),
            verifier=make_digest(key, "verifier", flow_id, page),
        )

    async def finish(self, request: HostRequest, page: str, answer: Mapping[str, str]) -> str:
        """Return the access token of whoever came back. Raises HostRejection."""
        flow_id, until, seal = self._split(answer.get("state", ""))
        key = self._find_key(flow_id, until, seal, page)
        if key is None or int(until) <= self._clock.now():
            message = (
                "This sign-in did not begin in this browser, or it took longer than 10 minutes. "
                "Sign in again; cookies have to be switched on."
            )
            raise HostRejection(403, message, "oauth_state")
        await self._use(flow_id, float(until))
        wait = self._attempts.take(request.address, ATTEMPTS_PER_MINUTE)
        if wait:
            raise reject_rate(
                "Too many sign-ins came from your address. Try again soon.", wait, "oauth_state"
            )
        return await self._flow.redeem(
            answer,
            self._base(request) + layout.OAUTH_CALLBACK,
            nonce=make_digest(key, "nonce", flow_id, page),
            verifier=make_digest(key, "verifier", flow_id, page),
        )

    @staticmethod
    def _split(state: str) -> tuple[str, str, str]:
        parts = state.split(".")
        if len(parts) != _STATE_PARTS or not (parts[1].isascii() and parts[1].isdigit()):
            return "", "0", ""
        return parts[0], parts[1], parts[2]

    def _find_key(self, flow_id: str, until: str, seal: str, page: str) -> bytes | None:
        """Return the key that sealed a state for this browser; None where none did."""
        for key in self._keys if page else ():
            expected = make_digest(key, "state", flow_id, until, page)
            if hmac.compare_digest(expected.encode(), seal.encode()):
                return key
        return None

    async def _use(self, flow_id: str, until: float) -> None:
        used = self._used.use(f"sign-in:{flow_id}", until)
        is_first = await used if inspect.isawaitable(used) else used
        if not is_first:
            message = "This sign-in was used already. Sign in again."
            raise HostRejection(400, message, "oauth_state")

    def _base(self, request: HostRequest) -> str:
        host = request.headers.get(b"host", b"").decode("latin-1")
        return self._public_url or f"{request.scheme}://{host}"


def _is_at(request: HostRequest, base: str) -> bool:
    """Tell whether a browser is at an address: by its Host or, if a proxy changed that, by its last page."""
    parts = urlsplit(base)
    default = {"https": ":443", "http": ":80"}.get(parts.scheme, "")
    name = parts.netloc.lower().removesuffix(default)
    host, referer = (request.headers.get(key, b"").decode("latin-1").lower() for key in (b"host", b"referer"))
    return host == name or referer.startswith(f"{parts.scheme}://{name}/")


def read_answer(query: Mapping[str, str]) -> dict[str, str]:
    """Return what an issuer sent along, and nothing else."""
    return {name: query[name] for name in ANSWER if 0 < len(query.get(name, "")) <= _MOST_ANSWER}


def write_landing(query: Mapping[str, str]) -> layout.Page:
    """Make the page that a browser sees for a moment when it comes back from the issuer."""
    onward = link(layout.OAUTH_FINISH, **read_answer(query))
    return layout.write_forward("Signing in", onward)


def make_oauth_sign_in(
    settings: HostSettings,
    environment: Mapping[str, str],
    clock: Clock,
    keys: tuple[bytes, ...],
    used: NonceStore,
    verify_id_token: VerifyIdToken,
) -> OAuthSignIn:
    """Make the way to the issuer that is set, where it knows this host as a client."""
    logs.hide(settings.oauth_client_secret)
    proxies = Proxies.from_environment(environment)
    flow = CodeFlow(
        settings.oauth_issuer or "",
        Client(settings.oauth_client_id or "", settings.oauth_client_secret),
        settings.oauth_audience or "",
        clock,
        fetch=partial(fetch, proxies=proxies),
        post=partial(post, proxies=proxies),
        verify_id_token=verify_id_token,
    )
    return OAuthSignIn(flow, keys, clock, settings.public_url, used)
