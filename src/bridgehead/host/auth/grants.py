"""Grants: the rights of a caller, from one of our tokens or from the scopes of an OAuth token.

| scope                  | opens                                                        |
| ---------------------- | ------------------------------------------------------------ |
| `bridgehead`           | all tools of all bridges                                     |
| `bridgehead:read`      | the read-only tools of all bridges                           |
| `bridgehead:aoc`       | all tools of one bridge                                      |
| `bridgehead:aoc:read`  | the read-only tools of one bridge                            |
| `bridgehead:spend`     | with a `read` scope: also tools that cost money              |
| `bridgehead:metrics`   | `/metrics`                                                   |
| `bridgehead:events`    | `/events`                                                    |
| `bridgehead:dashboard` | the dashboard, to view                                       |
| `bridgehead:admin`     | the dashboard, also to act: revoke tokens, end sessions      |
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
OAUTH = "oauth:"
"""Before the identity of an OAuth caller; the id of a token of ours has no colon."""


class Grant(Struct, frozen=True):
    """One caller and its rights."""

    # The dashboard seals grants into cookies (`sign_in`), and those of an older version are decoded with this
    # class: a new field needs a default that opens nothing.

    name: str | None
    """The caller's name in limits, logs and usage; None if callers need no token."""
    full: frozenset[str] = frozenset()
    """Bridges with all their tools; `*` stands for all bridges."""
    reading: frozenset[str] = frozenset()
    """Bridges with their read-only tools."""
    metrics: bool = False
    may_spend: bool = False
    """Whether paid tools of the bridges in `reading` are open; those of the bridges in `full` always are."""
    per_minute: int = 0
    """Requests per minute; 0 is no limit."""
    expires: float | None = None
    """In seconds since 1970."""
    token_id: str = ""
    """Id of one of our tokens; a new token under the same name has another. Empty for OAuth tokens."""
    events: bool = False
    dashboard: bool = False
    """Whether it may view the dashboard."""
    admin: bool = False
    """Whether it may view the dashboard and act there."""
    tools: tuple[str, ...] = ()
    """Patterns of the tools that are open in its bridges; empty means all that the other rights open."""
    identity: str = ""
    """Issuer, subject and client of an OAuth token, as one name; empty for our tokens, which have an id."""

    @property
    def owner(self) -> str:
        """Whose the sessions, tasks and open questions of this caller are."""
        return self.token_id or self.identity

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
"""The grant of every caller if no token is needed."""


class Opened(NamedTuple):
    """The rights in a set of scopes."""

    full: frozenset[str]
    reading: frozenset[str]
    metrics: bool
    may_spend: bool
    events: bool = False
    dashboard: bool = False
    admin: bool = False


def read_scopes(scopes: Iterable[str], bridges: Iterable[str]) -> Opened:
    """Return the rights in scopes; unknown scopes, such as other servers', grant nothing."""
    granted = set(scopes)
    by_bridge = {EVERYTHING: SCOPE, **{bridge: f"{SCOPE}:{bridge}" for bridge in bridges}}
    return Opened(
        frozenset(name for name, scope in by_bridge.items() if scope in granted),
        frozenset(name for name, scope in by_bridge.items() if f"{scope}:read" in granted),
        METRICS_SCOPE in granted,
        SPEND_SCOPE in granted,
        EVENTS_SCOPE in granted,
        DASHBOARD_SCOPE in granted,
        ADMIN_SCOPE in granted,
    )


def supported_scopes(bridges: Iterable[str], of: str | None = None) -> list[str]:
    """List the scopes of the whole host, or those of the bridge `of` alone."""
    bases = [*(() if of else (SCOPE,)), *(f"{SCOPE}:{bridge}" for bridge in bridges)]
    return (
        [scope for base in bases for scope in (base, f"{base}:read")]
        + [SPEND_SCOPE]
        + ([] if of else [METRICS_SCOPE, EVENTS_SCOPE, DASHBOARD_SCOPE, ADMIN_SCOPE])
    )


def needed_scope(bridge: str | None, *, is_mcp: bool, page: str = "") -> str:
    """Return the scope that opens a bridge, all bridges, the metrics or the events."""
    if not is_mcp:
        return EVENTS_SCOPE if page == "/events" else METRICS_SCOPE
    return f"{SCOPE}:{bridge}" if bridge else SCOPE
