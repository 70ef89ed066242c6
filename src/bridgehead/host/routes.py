"""Routes: which path leads where. The few paths that there are, and the names they are counted under."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

MCP_PATHS = ("/mcp", "/sse", "/messages")
ALIVE = "/healthz"
READY = "/readyz"
METRICS = "/metrics"
EVENTS = "/events"
PAGES = "/dashboard"
"""What the pages of the dashboard are counted under."""
RESOURCE = "/.well-known/oauth-protected-resource"
NO_OAUTH = "/register"
"""What answers where clients look for OAuth and there is none."""
_OPENID = "/.well-known/openid-configuration"
_OAUTH_PATHS = (RESOURCE, "/.well-known/oauth-authorization-server", _OPENID)

Access = Literal["probe", "public", "token", "page"]
"""`probe`: anyone, under any Host, as probes come. `public`: without a token. `token`: only with one.

`page`: a browser, which shows who it is in its own way.
"""


class Route(NamedTuple):
    """Where a path leads."""

    name: str
    """The path as it is counted, and what answers a path that is not MCP's."""
    access: Access
    bridge: str | None = None
    is_mcp: bool = False


def make_table(bridges: Iterable[str], *, with_oauth: bool, pages: Iterable[str] = ()) -> dict[str, Route]:
    """Make the table of all paths."""
    found = {
        ALIVE: Route(ALIVE, "probe"),
        READY: Route(READY, "probe"),
        METRICS: Route(METRICS, "token"),
        EVENTS: Route(EVENTS, "token"),
    }
    found |= {path: Route(path if path == "/" else PAGES, "page") for path in pages}
    for bridge in (None, *bridges):
        prefix = f"/{bridge}" if bridge else ""
        for path in MCP_PATHS:
            found[prefix + path] = Route(prefix + path, "token", bridge, is_mcp=True)
        if bridge:
            found[f"{READY}/{bridge}"] = Route(READY, "probe", bridge)
        if with_oauth:
            found[f"{RESOURCE}{prefix}/mcp"] = Route(RESOURCE, "public", bridge)
        else:
            found |= {path: Route(NO_OAUTH, "public") for path in _oauth_paths(prefix)}
    if with_oauth:
        found[RESOURCE] = Route(RESOURCE, "public")
    else:
        found |= {path: Route(NO_OAUTH, "public") for path in (*_OAUTH_PATHS, NO_OAUTH)}
    return found


def _oauth_paths(prefix: str) -> Iterable[str]:
    """Name where clients of the endpoints below a prefix look for OAuth, in every order they know."""
    for endpoint in (f"{prefix}/mcp", f"{prefix}/sse"):
        yield from (path + endpoint for path in _OAUTH_PATHS)
        yield endpoint + _OPENID
