"""Authentication: identify the caller, by a bearer token or by the author's own function.

Deliberately small: no scopes, no expiry, no OAuth. `bridgehead serve` has all of that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from typing import TypeAlias

from ..calls.caller import Caller
from .message import Request
from .rejection import Rejection

MIN_TOKEN_LENGTH = 16
"""Shorter tokens can be guessed. This also catches a mapping the wrong way round, from names to tokens."""
WAIT_SECONDS = 10.0
"""Longest wait for an async `authenticate`."""

Principal: TypeAlias = str | Caller | None
"""The caller, or its name; None if it is not known."""
Authenticate: TypeAlias = Callable[[Mapping[str, str]], "Principal | Awaitable[Principal]"]
Tokens: TypeAlias = Mapping[str, str] | Iterable[str]


class Headers(Mapping[str, str]):
    """The headers of a request; lookup ignores case, iteration yields lower-case names."""

    __slots__ = ("_raw",)

    def __init__(self, raw: Mapping[bytes, bytes]) -> None:
        self._raw = raw

    def __getitem__(self, name: str) -> str:
        return self._raw[name.lower().encode("latin-1", "replace")].decode("latin-1")

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1") for name in self._raw)

    def __len__(self) -> int:
        return len(self._raw)


def accept_tokens(tokens: Tokens) -> Authenticate:
    """Return a function that identifies callers by their bearer token.

    A mapping gives the caller's name for each token; otherwise the name is derived from the token. Raises
    ValueError for tokens that are empty or easy to guess; no message contains a token.
    """
    if isinstance(tokens, str):
        tokens = (tokens,)
    # Looked up by hash, so that timing does not reveal how much of a token was right.
    principals: dict[bytes, str] = {}
    for token in tokens:
        if len(token) < MIN_TOKEN_LENGTH:
            raise ValueError(
                f"A token must be a text of at least {MIN_TOKEN_LENGTH} characters. "
                "Make one with secrets.token_urlsafe(). A mapping goes from tokens to the names of callers."
            )
        if not token.isascii() or not token.isprintable() or " " in token:
            raise ValueError("A token must be visible ASCII without spaces, or no client can send it.")
        digest = sha256(token.encode()).digest()
        name = tokens[token] if isinstance(tokens, Mapping) else f"token-{digest.hex()[:8]}"
        if not name:
            raise ValueError("The value of a token must be the name of the caller.")
        principals[digest] = name
    if not principals:
        raise ValueError("tokens is empty, so nobody could call. Leave it out to let everybody call.")

    def authenticate(headers: Mapping[str, str]) -> Principal:
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer":
            return None
        return principals.get(sha256(token.strip().encode()).digest())

    return authenticate


def checked(principal: object) -> str | None:
    """Return the caller's name; raises TypeError for anything but a name or an empty value, such as True."""
    if not principal:
        return None
    if not isinstance(principal, str):
        raise TypeError(f"authenticate must return the caller's name or None, not {type(principal).__name__}")
    return principal


def reject_caller(request: Request) -> Rejection:
    """Make the rejection of an unknown caller (RFC 6750, section 3)."""
    if b"authorization" in request.headers:
        message, details = "The credentials are not accepted here. ", b', error="invalid_token"'
    else:
        message, details = "This server needs to know who calls. ", b""
    message += "If you have a token for it, send the header Authorization: Bearer TOKEN."
    return Rejection(401, message, headers=((b"www-authenticate", b'Bearer realm="mcp"' + details),))


def reject_late() -> Rejection:
    """Make the rejection for an `authenticate` that takes too long."""
    return Rejection(
        503, "Checking who calls took too long. Try again in a moment.", headers=((b"retry-after", b"1"),)
    )
