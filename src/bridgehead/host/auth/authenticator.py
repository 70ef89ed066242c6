"""Authenticator: who a caller is. Tokens from a file, from an authorisation server, or nobody is asked.

An issuer gives a grant at once where it can. Where it has to ask somebody first (an authorisation server for
its keys), `check` gives None, and `check_later` does the same with waiting. Failures of one address are
limited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from bridgehead.mcp import OVERLOADED
from bridgehead.runtime.timing import Clock

from .grants import ANYONE, Grant
from .rejection import HostRejection, challenge, reject_rate
from .throttle import Throttle
from .tokens import PREFIX, Tokens

FAILURES_PER_MINUTE = 20
"""Failures of one address that are answered with 401; further ones get 429."""

ChallengeDetails = Callable[[], str]
"""What the challenge for a caller without a valid token adds."""

MISSING = "token_missing"
EXPIRED = "token_expired"
UNKNOWN = "token_unknown"


class InvalidToken(Exception):
    """A token that opens nothing, and why; the words are for the caller."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class Issuer(Protocol):
    """Somebody whose tokens are accepted."""

    def recognizes(self, token: str) -> bool:
        """Tell whether a token looks like one of this issuer's."""

    def check(self, token: str) -> Grant | None:
        """Give what a token opens; None where that takes waiting. Raises InvalidToken."""

    async def check_later(self, token: str) -> Grant:
        """Give what a token opens, with waiting; raises InvalidToken."""


class FileIssuer:
    """The tokens of the file."""

    def __init__(self, tokens: Tokens, clock: Clock) -> None:
        self._tokens = tokens
        self._clock = clock

    def recognizes(self, token: str) -> bool:
        """All tokens that begin as ours do."""
        return token.startswith(f"{PREFIX}_")

    def check(self, token: str) -> Grant:
        """Look the token up."""
        grant = self._tokens.grant_of(token)
        if grant is None:  # it may have been added a moment ago
            self._tokens.refresh()
            grant = self._tokens.grant_of(token)
        if grant is None and not self._tokens.is_known:
            message = "The server cannot read its tokens yet: its database is down. Try again in a moment."
            raise HostRejection(503, message, "tokens", headers=((b"retry-after", b"1"),), code=OVERLOADED)
        if grant is None:
            raise InvalidToken("The token is not known here, or was revoked.", UNKNOWN)
        if grant.expires is not None and grant.expires <= self._clock.now():
            raise InvalidToken("The token has expired. Ask who runs the server for a new one.", EXPIRED)
        return grant

    async def check_later(self, token: str) -> Grant:
        """Look the token up: there is nobody to wait for."""
        return self.check(token)


class Authenticator:
    """Finds out who a caller is, or says why it cannot."""

    def __init__(self, issuers: Sequence[Issuer], clock: Clock, count_failure: Callable[[str], None]) -> None:
        self._issuers = issuers
        self._failures = Throttle(clock.monotonic)
        self._count_failure = count_failure

    @property
    def needs_token(self) -> bool:
        """Whether callers need a token."""
        return bool(self._issuers)

    def check(self, headers: dict[bytes, bytes], address: str, details: ChallengeDetails) -> Grant | None:
        """Give what the caller may use; None where that takes waiting. Raises HostRejection."""
        if not self._issuers:
            return ANYONE
        try:
            token = _bearer(headers)
            return self._issuer_of(token).check(token)
        except InvalidToken as failure:
            raise self._reject(address, details, failure) from None

    async def check_later(
        self, headers: dict[bytes, bytes], address: str, details: ChallengeDetails
    ) -> Grant:
        """Do the same, with waiting."""
        try:
            token = _bearer(headers)
            return await self._issuer_of(token).check_later(token)
        except InvalidToken as failure:
            raise self._reject(address, details, failure) from None

    def _issuer_of(self, token: str) -> Issuer:
        for issuer in self._issuers:
            if issuer.recognizes(token):
                return issuer
        raise InvalidToken("The token is not one that is accepted here.", UNKNOWN)

    def _reject(self, address: str, details: ChallengeDetails, failure: InvalidToken) -> HostRejection:
        self._count_failure(failure.reason)
        if failure.reason == MISSING:  # which guesses at nothing, and is how every OAuth client begins
            return HostRejection(401, str(failure), MISSING, headers=(challenge(details()),))
        wait = self._failures.take(address, FAILURES_PER_MINUTE)
        if wait:
            message = "Too many requests from your address had no valid token."
            return reject_rate(message, wait, "auth_failures")
        told = ', error="invalid_token"' + details()
        return HostRejection(401, str(failure), failure.reason, headers=(challenge(told),))


def _bearer(headers: dict[bytes, bytes]) -> str:
    kind, _, token = headers.get(b"authorization", b"").partition(b" ")
    if kind.lower() != b"bearer" or not token.strip():
        raise InvalidToken("A token is needed: send the header Authorization: Bearer TOKEN.", MISSING)
    return token.strip().decode("latin-1")
