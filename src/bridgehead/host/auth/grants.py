"""Grants: what a caller may use, whoever said so, a file of tokens or an authorisation server.

An authorisation server says it in scopes: `bridgehead` opens everything, `bridgehead:read` what only reads,
`bridgehead:aoc` one bridge, and `bridgehead:aoc:read` what only reads of it; `bridgehead:spend` adds the
tools that cost money to those that only read, `bridgehead:metrics` opens the metrics, `bridgehead:events` the
stream of events, and `bridgehead:dashboard` the page for people, where `bridgehead:admin` may also act.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

EVERYTHING = "*"
SCOPE = "bridgehead"
METRICS_SCOPE = f"{SCOPE}:metrics"
SPEND_SCOPE = f"{SCOPE}:spend"
EVENTS_SCOPE = f"{SCOPE}:events"
DASHBOARD_SCOPE = f"{SCOPE}:dashboard"
ADMIN_SCOPE = f"{SCOPE}:admin"


class Grant(Struct, frozen=True):
    """One caller: its name, and what is open to it."""

    name: str | None
    """The caller's name in limits, logs and usage; None where nobody is asked."""
    full: frozenset[str] = frozenset()
    """Bridges of which it may use everything; `*` stands for all of them."""
    reading: frozenset[str] = frozenset()
    """Bridges of which it may use what only reads."""
    metrics: bool = False
    may_spend: bool = False
    """Whether tools that cost money are open where only reading is; where everything is, they are anyway."""
    per_minute: int = 0
    """Requests that it may make in a minute; 0 is no limit."""
    expires: float | None = None
    """When it ends, in seconds since 1970."""
    token_id: str = ""
    """What tells this grant from an earlier one under the same name."""
    events: bool = False
    """Whether the stream of events is open to it."""
    dashboard: bool = False
    """Whether it may look at the dashboard."""
    admin: bool = False
    """Whether it may look and also act there: revoke tokens, end sessions."""

    def may_write(self, bridge: str) -> bool:
        """Tell whether all tools of a bridge are open."""
        return bridge in self.full or EVERYTHING in self.full

    @property
    def may_look(self) -> bool:
        """Whether the dashboard is open."""
        return self.dashboard or self.admin

    def may_read(self, bridge: str) -> bool:
        """Tell whether at least the reading tools of a bridge are open."""
        return self.may_write(bridge) or bridge in self.reading or EVERYTHING in self.reading


ANYONE = Grant(None, frozenset({EVERYTHING}), metrics=True, events=True, dashboard=True, admin=True)
"""What everybody may where nobody is asked."""


class Opened(NamedTuple):
    """What scopes open."""

    full: frozenset[str]
    reading: frozenset[str]
    metrics: bool
    may_spend: bool
    events: bool = False
    dashboard: bool = False
    admin: bool = False


def read_scopes(scopes: Iterable[str], bridges: Iterable[str]) -> Opened:
    """Read scopes; what is not ours opens nothing."""
    given = set(scopes)
    every = {EVERYTHING: SCOPE, **{bridge: f"{SCOPE}:{bridge}" for bridge in bridges}}
    return Opened(
        frozenset(name for name, scope in every.items() if scope in given),
        frozenset(name for name, scope in every.items() if f"{scope}:read" in given),
        METRICS_SCOPE in given,
        SPEND_SCOPE in given,
        EVENTS_SCOPE in given,
        DASHBOARD_SCOPE in given,
        ADMIN_SCOPE in given,
    )


def supported_scopes(bridges: Iterable[str], of: str | None = None) -> list[str]:
    """List the scopes that mean something for the whole host, or for one bridge."""
    words = [*(() if of else (SCOPE,)), *(f"{SCOPE}:{bridge}" for bridge in bridges)]
    return (
        [scope for word in words for scope in (word, f"{word}:read")]
        + [SPEND_SCOPE]
        + ([] if of else [METRICS_SCOPE, EVENTS_SCOPE, DASHBOARD_SCOPE, ADMIN_SCOPE])
    )


def needed_scope(bridge: str | None, *, is_mcp: bool, page: str = "") -> str:
    """Name the scope that opens a bridge, all of them, the metrics or the events."""
    if not is_mcp:
        return EVENTS_SCOPE if page == "/events" else METRICS_SCOPE
    return f"{SCOPE}:{bridge}" if bridge else SCOPE
