"""Authenticator: identifies a caller by its bearer token: one of ours, or of an authorisation server.

Failures are limited per address.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from bridgehead.mcp import OVERLOADED
from bridgehead.runtime.timing import Clock

from .grants import Grant
from .rejection import HostRejection, challenge, reject_rate
from .throttle import Throttle
from .tokens import PREFIX, Tokens

FAILURES_PER_MINUTE = 20
"""Failures of one address that are answered with 401; further ones get 429."""

MISSING = "token_missing"
EXPIRED = "token_expired"
UNKNOWN = "token_unknown"


class InvalidToken(Exception):
    """A token that is not accepted. The message is for the caller, `reason` for metrics and the log."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class Issuer(Protocol):
    """A source of tokens: ours, or an authorisation server."""

    def recognizes(self, token: str) -> bool:
        """Tell by its form whether a token is one of this issuer's."""

    async def check(self, token: str) -> Grant:
        """Return the grant of a token. Raises InvalidToken."""


class StoredTokenIssuer:
    """The tokens that `bridgehead token` made, in a file or in a database."""

    def __init__(self, tokens: Tokens, clock: Clock) -> None:
        self._tokens = tokens
        self._clock = clock

    def recognizes(self, token: str) -> bool:
        """Recognize the prefix of our tokens."""
        return token.startswith(f"{PREFIX}_")

    async def check(self, token: str) -> Grant:
        """Look the token up."""
        now = self._clock.now()
        grant = self._tokens.grant_of(token, now)
        if grant is None:  # it may have been added since the file was last read
            self._tokens.refresh()
            grant = self._tokens.grant_of(token, now)
        # 503 and not 401: the token may be valid.
        if grant is None and not self._tokens.is_known:
            message = "The server cannot read its tokens yet: its database is down. Try again in a moment."
            raise HostRejection(503, message, "tokens", headers=((b"retry-after", b"1"),), code=OVERLOADED)
        if grant is None:
            raise InvalidToken("The token is not known here, or was revoked.", UNKNOWN)
        if grant.expires is not None and grant.expires <= now:
            raise InvalidToken("The token has expired. Ask the server's operator for a new one.", EXPIRED)
        self._tokens.note_use(grant.token_id, now)
        return grant


class Authenticator:
    """Identifies callers by their bearer token."""

    def __init__(
        self,
        issuers: Sequence[Issuer],
        clock: Clock,
        count_failure: Callable[[str], None],
        *,
        needs_token: bool,
    ) -> None:
        self.issuers = issuers
        self.needs_token = needs_token
        """Whether callers need a token; if not, only callers that send one of our tokens are checked."""
        self._failures = Throttle(clock.monotonic)
        self._count_failure = count_failure

    async def check(self, headers: dict[bytes, bytes], address: str, details: Callable[[], str]) -> Grant:
        """Return the caller's grant. Raises HostRejection.

        `details` returns further parameters of a rejection's challenge, such as where to get a token.
        """
        kind, _, rest = headers.get(b"authorization", b"").partition(b" ")
        token = rest.strip().decode("latin-1")
        if kind.lower() != b"bearer" or not token:
            missing = InvalidToken("A token is needed: send the header Authorization: Bearer TOKEN.", MISSING)
            raise self._reject(address, details, missing)
        # The form decides: our tokens have a prefix, and a JWT has three parts.
        for issuer in self.issuers:
            if issuer.recognizes(token):
                break
        else:
            unknown = InvalidToken("The token is not one that is accepted here.", UNKNOWN)
            raise self._reject(address, details, unknown)
        try:
            return await issuer.check(token)
        except InvalidToken as failure:
            raise self._reject(address, details, failure) from None

    def _reject(self, address: str, details: Callable[[], str], failure: InvalidToken) -> HostRejection:
        self._count_failure(failure.reason)
        # Neither is a guess: every OAuth client begins without a token, and an expired one was the issuer's.
        if failure.reason == MISSING:
            return HostRejection(401, str(failure), MISSING, headers=(challenge(details()),))
        header = challenge(', error="invalid_token"' + details())
        if failure.reason == EXPIRED:
            return HostRejection(401, str(failure), EXPIRED, headers=(header,))
        wait = self._failures.take(address, FAILURES_PER_MINUTE)
        if wait:
            message = "Too many requests from your address had no valid token."
            return reject_rate(message, wait, "auth_failures")
        return HostRejection(401, str(failure), failure.reason, headers=(header,))
