"""Origins: which pages may pose as a game. Any page that a browser shows can dial a port of this machine."""

from __future__ import annotations

from .settings import ANY_ORIGIN, NO_ORIGIN

_ANY_PORT = ":*"


def is_allowed(origin: str | None, allowed: tuple[str, ...]) -> bool:
    """Tell whether a dial-in with this Origin header (None: without one) is let in."""
    if ANY_ORIGIN in allowed:
        return True
    if origin is None:
        return NO_ORIGIN in allowed
    return any(_fits(origin.lower(), entry.lower()) for entry in allowed)


def _fits(origin: str, entry: str) -> bool:
    if not entry.endswith(_ANY_PORT):
        return origin == entry.rstrip("/") or origin == entry
    base = entry.removesuffix(_ANY_PORT)
    rest = origin.removeprefix(base)
    return origin.startswith(base) and (rest == "" or (rest[0] == ":" and rest[1:].isdecimal()))


def shown(origin: str | None) -> str:
    """Name where a dial-in came from."""
    return origin or "a program without an origin (the desktop build dials so)"
