"""Auth: who a caller is. Bearer tokens from a file, from an authorisation server, or nobody is asked.

A gate gives a grant at once where it can. Where it has to ask somebody first (an authorisation server for its
keys), `grant` gives None, and `ask` does the same with waiting. Failures of one address are limited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from bridgehead.runtime.timing import Clock

from .grants import ANYONE, Grant
from .refusals import Refusal, challenged, too_often
from .throttle import Throttle
from .tokens import PREFIX, Tokens

FAILURES_PER_MINUTE = 20
"""Failures that one address hears of as such; further ones are told to wait."""

Challenge = Callable[[], str]
"""What a caller without a good token is told beyond that it needs one."""

MISSING = "token_missing"
EXPIRED = "token_expired"
UNKNOWN = "token_unknown"


class NotAccepted(Exception):
    """A token that opens nothing, and why; the words are for the caller."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class Issuer(Protocol):
    """Somebody whose tokens are accepted."""

    def grant(self, token: str) -> Grant | None:
        """Give what a token opens; None where that takes waiting. Raises NotAccepted."""

    def knows(self, token: str) -> bool:
        """Tell whether a token looks like one of this issuer's."""

    async def ask(self, token: str) -> Grant:
        """Give what a token opens, with waiting; raises NotAccepted."""


class FromFile:
    """The tokens of the file."""

    def __init__(self, tokens: Tokens, clock: Clock) -> None:
        self._tokens = tokens
        self._clock = clock

    def knows(self, token: str) -> bool:
        """All tokens that begin as ours do."""
        return token.startswith(f"{PREFIX}_")

    def grant(self, token: str) -> Grant:
        """Look the token up."""
        grant = self._tokens.grant_of(token)
        if grant is None:  # it may have been added a moment ago
            self._tokens.refresh()
            grant = self._tokens.grant_of(token)
        if grant is None:
            raise NotAccepted("The token is not known here, or was revoked.", UNKNOWN)
        if grant.expires is not None and grant.expires <= self._clock.now():
            raise NotAccepted("The token has expired. Ask who runs the server for a new one.", EXPIRED)
        return grant

    async def ask(self, token: str) -> Grant:
        """Look the token up: there is nobody to wait for."""
        return self.grant(token)


class GateKeeper:
    """Lets callers in, or words why not."""

    def __init__(self, issuers: Sequence[Issuer], clock: Clock, failed: Callable[[str], None]) -> None:
        self._issuers = issuers
        self._failures = Throttle(clock.monotonic)
        self._failed = failed

    @property
    def asks(self) -> bool:
        """Whether callers need a token."""
        return bool(self._issuers)

    def grant(self, headers: dict[bytes, bytes], address: str, challenge: Challenge) -> Grant | None:
        """Give what the caller may use; None where that takes waiting. Raises Refusal."""
        if not self._issuers:
            return ANYONE
        try:
            token = _bearer(headers)
            return self._issuer_of(token).grant(token)
        except NotAccepted as failure:
            raise self._refused(address, challenge, failure) from None

    def _issuer_of(self, token: str) -> Issuer:
        for issuer in self._issuers:
            if issuer.knows(token):
                return issuer
        raise NotAccepted("The token is not one that is accepted here.", UNKNOWN)

    async def ask(self, headers: dict[bytes, bytes], address: str, challenge: Challenge) -> Grant:
        """Do the same, with waiting."""
        try:
            token = _bearer(headers)
            return await self._issuer_of(token).ask(token)
        except NotAccepted as failure:
            raise self._refused(address, challenge, failure) from None

    def _refused(self, address: str, challenge: Challenge, failure: NotAccepted) -> Refusal:
        self._failed(failure.reason)
        if failure.reason == MISSING:  # which guesses at nothing, and is how every OAuth client begins
            return Refusal(401, str(failure), MISSING, headers=(challenged(challenge()),))
        wait = self._failures.take(address, FAILURES_PER_MINUTE)
        if wait:
            return too_often("Too many requests from your address had no good token.", wait, "auth_failures")
        problem = ', error="invalid_token"'
        return Refusal(401, str(failure), failure.reason, headers=(challenged(problem + challenge()),))


def _bearer(headers: dict[bytes, bytes]) -> str:
    kind, _, token = headers.get(b"authorization", b"").partition(b" ")
    if kind.lower() != b"bearer" or not token.strip():
        raise NotAccepted("A token is needed: send the header Authorization: Bearer TOKEN.", MISSING)
    return token.strip().decode("latin-1")
