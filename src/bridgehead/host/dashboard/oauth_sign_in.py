"""OAuth sign-in: redirects a browser to the authorisation server, and lets the same browser return once.

Our cookies are SameSite=Strict, so a browser does not send them when another site redirects to us. Therefore
the redirect URI answers with a page that forwards to another address of ours, and that request has them.

No state is stored in between. `state` is sealed with a key of ours over the browser's cookie; PKCE's verifier
and the nonce are derived from the same, so they never leave the server, and any replica can finish
a sign-in that another began. Each state is used once.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from functools import partial
from urllib.parse import urlsplit

from bridgehead.mcp import NonceStore
from bridgehead.runtime import logs
from bridgehead.runtime.http import Proxies
from bridgehead.runtime.timing import Clock

from ..auth.code_flow import CodeFlow, OAuthClient, VerifyIdToken
from ..auth.discovery import fetch, post
from ..auth.grants import ADMIN_SCOPE, DASHBOARD_SCOPE, SCOPE
from ..auth.rejection import HostRejection, reject_rate
from ..auth.throttle import Throttle
from ..request import HostRequest
from ..settings import HostSettings
from . import layout
from .sign_in import make_digest
from .templates import link

STATE_SECONDS = 600.0
"""Longest time between leaving for the authorisation server and returning."""
ATTEMPTS_PER_MINUTE = 20
"""Code exchanges per minute for one address: each is a request to the issuer."""
LOOK_SCOPES = (DASHBOARD_SCOPE, f"{SCOPE}:read")
ACT_SCOPES = (ADMIN_SCOPE, DASHBOARD_SCOPE, SCOPE)
ANSWER = ("code", "state", "iss", "error", "error_description")
"""Parameters of an authorisation response that are passed on."""
_MAX_PARAMETER = 8192
_STATE_PARTS = 3
_OWN_SITES = (b"same-origin", b"none")


class OAuthSignIn:
    """Sign-in at one issuer: `begin` redirects the browser to it, `finish` handles its return."""

    def __init__(
        self,
        flow: CodeFlow,
        keys: tuple[bytes, ...],
        clock: Clock,
        public_url: str | None,
        nonces: NonceStore,
    ) -> None:
        self._flow = flow
        self._keys = keys
        self._clock = clock
        self._public_url = (public_url or "").rstrip("/")
        self._nonces = nonces
        self._attempts = Throttle(clock.monotonic)

    @property
    def issuer_name(self) -> str:
        """The issuer's host name, for the button."""
        return self._flow.issuer_name

    async def begin(self, request: HostRequest, page: str, *, acts: bool) -> str:
        """Return the address to redirect the browser with the cookie `page` to. Raises HostRejection."""
        base = self._base(request)
        # The browser must be at the public address, by its Host or, behind a proxy that changes that, by its
        # Referer. Otherwise it would return to a host name that has none of its cookies.
        parts = urlsplit(base)
        default_port = {"https": ":443", "http": ":80"}.get(parts.scheme, "")
        name = parts.netloc.lower().removesuffix(default_port)
        host, referer = (
            request.headers.get(key, b"").decode("latin-1").lower() for key in (b"host", b"referer")
        )
        if host != name and not referer.startswith(f"{parts.scheme}://{name}/"):
            return base + layout.OVERVIEW
        # Only our own page may begin a sign-in, not a link on another site.
        if not page or request.headers.get(b"sec-fetch-site", b"none") not in _OWN_SITES:
            return layout.OVERVIEW
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
        """Return the access token for the browser that returned. Raises HostRejection."""
        parts = answer.get("state", "").split(".")
        if len(parts) != _STATE_PARTS or not (parts[1].isascii() and parts[1].isdigit()):
            parts = ["", "0", ""]
        flow_id, until, seal = parts
        # Any of our keys may have sealed it (they rotate), but only for this browser's cookie.
        key = None
        for candidate in self._keys if page else ():
            expected = make_digest(candidate, "state", flow_id, until, page)
            if hmac.compare_digest(expected.encode(), seal.encode()):
                key = candidate
                break
        if key is None or int(until) <= self._clock.now():
            message = (
                "This sign-in did not begin in this browser, or it took longer than 10 minutes. "
                "Sign in again; cookies have to be switched on."
            )
            raise HostRejection(403, message, "oauth_state")
        # After the seal: only states that we made are stored. Before the exchange: of two requests with the
        # same answer, one reaches the issuer.
        if not await self._nonces.use(f"sign-in:{flow_id}", float(until)):
            raise HostRejection(400, "This sign-in was used already. Sign in again.", "oauth_state")
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

    def _base(self, request: HostRequest) -> str:
        host = request.headers.get(b"host", b"").decode("latin-1")
        return self._public_url or f"{request.scheme}://{host}"


def read_answer(query: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of an authorisation response, and nothing else."""
    return {name: query[name] for name in ANSWER if 0 < len(query.get(name, "")) <= _MAX_PARAMETER}


def write_landing(query: Mapping[str, str]) -> layout.Page:
    """Make the page at the redirect URI, which forwards to the address that gets our cookies."""
    onward = link(layout.OAUTH_FINISH, **read_answer(query))
    return layout.write_forward("Signing in", onward)


def make_oauth_sign_in(
    settings: HostSettings,
    environment: Mapping[str, str],
    clock: Clock,
    keys: tuple[bytes, ...],
    nonces: NonceStore,
    verify_id_token: VerifyIdToken,
) -> OAuthSignIn:
    """Build the sign-in from settings that name an issuer and a client id."""
    logs.hide(settings.oauth_client_secret)
    proxies = Proxies.from_environment(environment)
    flow = CodeFlow(
        settings.oauth_issuer or "",
        OAuthClient(settings.oauth_client_id or "", settings.oauth_client_secret),
        settings.oauth_audience or "",
        clock,
        fetch=partial(fetch, proxies=proxies),
        post=partial(post, proxies=proxies),
        verify_id_token=verify_id_token,
    )
    return OAuthSignIn(flow, keys, clock, settings.public_url, nonces)
