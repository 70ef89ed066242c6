"""Routes: the table of all paths, who may use each, and the name under which each is counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

MCP_PATHS = ("/mcp", "/sse", "/messages")
ALIVE = "/healthz"
READY = "/readyz"
METRICS = "/metrics"
EVENTS = "/events"
PAGES = "/dashboard"
"""The route name of all dashboard pages but `/`."""
RESOURCE = "/.well-known/oauth-protected-resource"
NO_OAUTH = "/register"
"""The route name of every path at which clients look for OAuth, if the host has none."""
_OPENID = "/.well-known/openid-configuration"
_OAUTH_PATHS = (RESOURCE, "/.well-known/oauth-authorization-server", _OPENID)

Access = Literal["probe", "public", "token", "page"]
"""`probe`: without a token and under any Host, since probes send an IP address. `public`: without a token.

`token`: only with a token. `page`: a browser, identified by its cookies.
"""


class Route(NamedTuple):
    """The target of a path."""

    name: str
    """Name in metrics and, unless `is_mcp`, the key of the page that answers."""
    access: Access
    bridge: str | None = None
    is_mcp: bool = False


def make_table(bridges: Iterable[str], *, with_oauth: bool, pages: Iterable[str] = ()) -> dict[str, Route]:
    """Return the table of all paths; a dictionary, so that a request costs one look-up."""
    table = {
        ALIVE: Route(ALIVE, "probe"),
        READY: Route(READY, "probe"),
        METRICS: Route(METRICS, "token"),
        EVENTS: Route(EVENTS, "token"),
    }
    table |= {path: Route(path if path == "/" else PAGES, "page") for path in pages}
    for bridge in (None, *bridges):
        prefix = f"/{bridge}" if bridge else ""
        for path in MCP_PATHS:
            table[prefix + path] = Route(prefix + path, "token", bridge, is_mcp=True)
        if bridge:
            table[f"{READY}/{bridge}"] = Route(READY, "probe", bridge)
        if with_oauth:
            # RFC 9728, section 3.1: the well-known path comes before the path of the resource.
            table[f"{RESOURCE}{prefix}/mcp"] = Route(RESOURCE, "public", bridge)
            continue
        # After a 401 clients look for an authorisation server. These paths tell them how to get a token
        # instead. OpenID Connect Discovery appends its path, RFC 8414 inserts it; clients try both.
        for endpoint in (f"{prefix}/mcp", f"{prefix}/sse"):
            for path in (*(path + endpoint for path in _OAUTH_PATHS), endpoint + _OPENID):
                table[path] = Route(NO_OAUTH, "public")
    if with_oauth:
        table[RESOURCE] = Route(RESOURCE, "public")
    else:
        table |= {path: Route(NO_OAUTH, "public") for path in (*_OAUTH_PATHS, NO_OAUTH)}
    return table
