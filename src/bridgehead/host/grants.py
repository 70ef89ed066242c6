"""Grants: what a caller may use, whoever said so, a file of tokens or an authorisation server."""

from __future__ import annotations

from msgspec import Struct

EVERYTHING = "*"


class Grant(Struct, frozen=True):
    """One caller: its name, and what is open to it."""

    name: str | None
    """The caller's name in limits, logs and usage; None where nobody is asked."""
    full: frozenset[str] = frozenset()
    """Bridges of which it may use everything; `*` stands for all of them."""
    reading: frozenset[str] = frozenset()
    """Bridges of which it may use what only reads."""
    metrics: bool = False
    per_minute: int = 0
    """Requests that it may make in a minute; 0 is no limit."""
    expires: float | None = None
    """When it ends, in seconds since 1970."""
    key: str = ""
    """What tells this grant from an earlier one under the same name."""

    def may_write(self, bridge: str) -> bool:
        """Tell whether all tools of a bridge are open."""
        return bridge in self.full or EVERYTHING in self.full

    def may_read(self, bridge: str) -> bool:
        """Tell whether at least the reading tools of a bridge are open."""
        return self.may_write(bridge) or bridge in self.reading or EVERYTHING in self.reading


ANYONE = Grant(None, frozenset({EVERYTHING}), metrics=True)
"""What everybody may where nobody is asked."""
