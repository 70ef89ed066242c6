"""Clients: writes the pages of clients (tokens, limits, sessions), of failures, and the sign-in. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ..auth.grants import EVERYTHING, Grant
from ..auth.tokens import KnownToken
from . import layout
from .charts import draw_meter
from .html import NOTHING, Child, Html, join, link, table, tag
from .layout import Page, badge, day, duration, empty, form, hidden, number, section, size, when
from .overview import write_failures, write_notices
from .snapshot import Snapshot

_RESOURCES = ("sessions", "streams", "requests", "connections", "bytes")
"""Limited per caller, each in a column."""
_MAX_CALLERS = 50


def write_clients(
    snapshot: Snapshot,
    tokens: Sequence[KnownToken] | None,
    proof: str,
    *,
    connect: Html = NOTHING,
    owner: str = "",
    may_act: bool,
    may_ask: bool = False,
) -> Page:
    """Write the page of tokens, limits and sessions. `tokens` is None if callers need none.

    `owner` is the name of this process among the replicas, which the forms that end a session carry.
    `connect` is the section with the commands for clients. With `may_ask` the page offers to sign in again
    for the right to act.
    """
    ask = tag("a", "Sign in again to act", href=link(layout.OAUTH_START, to="act"), class_="button")
    lead = tag("p", "You may look here. ", ask, class_="lead") if may_ask else NOTHING
    body = join(
        [
            tag("h1", "Clients"),
            lead,
            section("Tokens", _write_tokens(snapshot, tokens, may_act=may_act), name="tokens"),
            section("Open now, by caller", _write_limits(snapshot), name="limits"),
            section("Sessions", _write_sessions(snapshot, proof, owner, may_act=may_act), name="sessions"),
            connect,
        ]
    )
    return Page("Clients", body, layout.CLIENTS, is_live=True)


def _write_tokens(snapshot: Snapshot, tokens: Sequence[KnownToken] | None, *, may_act: bool) -> Html:
    if tokens is None:
        return empty("Nobody needs a token here: only this machine can reach the server.")
    if not tokens:
        return empty("There are no tokens. Make one with ", tag("code", "bridgehead token add NAME"), ".")
    heads = [
        ("Name", False),
        ("Bridges", False),
        ("Rights", False),
        ("Limit a minute", True),
        ("Requests", True),
        ("Created", False),
        ("Last used", False),
        ("Expires", False),
        *([("Action", False)] if may_act else []),
    ]
    rows: list[list[Child]] = []
    for token in tokens:
        grant = token.grant
        name = grant.name or ""
        bridges = sorted((grant.full | grant.reading) - {EVERYTHING})
        has_all = EVERYTHING in grant.full | grant.reading
        rights = {
            "everything": bool(grant.full),
            "read": bool(grant.reading) and not grant.full,
            "spend": grant.may_spend,
            "metrics": grant.metrics,
            "events": grant.events,
            "dashboard": grant.dashboard,
            "admin": grant.admin,
        }
        ends = "never" if grant.expires is None else day(grant.expires)
        used = snapshot.token_uses.get(grant.token_id)
        has_ended = grant.expires is not None and grant.expires <= snapshot.taken
        action = tag(
            "a", "Revoke", href=link(layout.REVOKE, name=name), class_="danger", aria_label=f"Revoke {name}"
        )
        rows.append(
            [
                name,
                "all" if has_all else ", ".join(bridges) or "none",
                ", ".join(right for right, has_it in rights.items() if has_it),
                number(grant.per_minute) if grant.per_minute else "no limit",
                number(snapshot.clients.get(name, {}).get("made", 0)),
                day(token.created),
                # Not "never": uses before this server recorded them are unknown.
                "none recorded" if used is None else when(used, snapshot.taken),
                [ends, " ", badge("expired", "bad")] if has_ended else ends,
                *([action] if may_act else []),
            ]
        )
    return table(heads, rows, caption="Tokens and what they open")


def _write_limits(snapshot: Snapshot) -> Html:
    callers = {
        name: counts
        for name, counts in snapshot.clients.items()
        if any(counts.get(resource) for resource in (*_RESOURCES, "thread_ms"))
    }
    if not callers:
        return empty(
            "Nobody has anything open. Sessions, streams and connections appear here beside their limits."
        )
    limits = snapshot.limits

    def rank(caller: tuple[str, dict[str, int]]) -> tuple[float, str]:
        """Sort callers by how close they are to one of their limits, the closest first."""
        name, counts = caller
        shares = (
            counts.get(resource, 0) / limits[resource] for resource in _RESOURCES if limits.get(resource)
        )
        return -max(shares, default=0.0), name

    def write_meter(resource: str, count: int) -> Html:
        limit = limits.get(resource, 0)
        if not limit:
            return tag("span", number(count))
        words = size if resource == "bytes" else number
        return draw_meter(resource, count, limit, f"{words(count)} of {words(limit)}")

    rows = [
        [
            name,
            *(write_meter(resource, counts.get(resource, 0)) for resource in _RESOURCES),
            f"{counts.get('thread_ms', 0) / 1000:,.1f} s",
        ]
        for name, counts in sorted(callers.items(), key=rank)[:_MAX_CALLERS]
    ]
    heads = [
        ("Caller", False),
        *((resource.capitalize(), True) for resource in _RESOURCES),
        ("Time in threads", True),
    ]
    return table(heads, rows, caption="What each caller has open, and its limit in each process")


def _write_sessions(snapshot: Snapshot, proof: str, owner: str, *, may_act: bool) -> Html:
    if not snapshot.sessions:
        return empty("No session is open. Clients of the newest protocol revision do not need one.")
    heads = [
        ("Client", False),
        ("Caller", False),
        ("Bridge", False),
        ("Revision", False),
        ("Idle", True),
        *([("Action", False)] if may_act else []),
    ]
    rows: list[list[Child]] = []
    for session in snapshot.sessions:
        client = session.client or "unnamed"
        action = form(
            layout.END_SESSION,
            proof,
            hidden("handle", session.handle),
            hidden("owner", owner),
            tag(
                "button", "End", class_="danger", aria_label=f"End the session of {client}, {session.caller}"
            ),
        )
        rows.append(
            [
                client,
                session.caller,
                session.bridge or "all",
                tag("span", session.revision, class_="whole"),
                "busy" if session.is_busy else duration(session.idle_seconds),
                *([action] if may_act else []),
            ]
        )
    return table(heads, rows, caption="Sessions that are open")


def ask_to_revoke(name: str, proof: str) -> Page:
    """Write the confirmation of a revocation."""
    body = join(
        [
            tag("h1", "Revoke a token"),
            tag(
                "p",
                "The token of ",
                tag("b", name),
                " stops working within a second, on every replica. "
                "Its responses in progress are cut off. This cannot be undone.",
            ),
            form(
                layout.REVOKE,
                proof,
                hidden("name", name),
                tag("button", f"Revoke the token of {name}", class_="danger"),
                tag("a", "Cancel", href=layout.CLIENTS, class_="button"),
                class_="actions",
            ),
        ]
    )
    return Page("Revoke a token", body, layout.CLIENTS)


def write_problems(snapshot: Snapshot, grant: Grant) -> Page:
    """Write the page of recent failures, notices and rejected requests."""
    failures = [failure for failure in snapshot.failures if grant.may_read(failure.bridge)]
    body = join(
        [
            tag("h1", "Failures"),
            section("Failed calls", write_failures(failures, snapshot.taken), name="failures"),
            section("Notices", write_notices(snapshot.notices, snapshot.taken), name="notices"),
            section("Refused requests", _write_rejections(snapshot), name="rejections"),
        ]
    )
    return Page("Failures", body, layout.FAILURES, is_live=True)


_REASONS = {
    "token_missing": "No token was sent.",
    "token_unknown": "The token is wrong or was revoked.",
    "token_expired": "The token has expired.",
    "token_invalid": "The access token is not accepted.",
    "auth_failures": "Too many wrong tokens came from one address.",
    "grant": "The token lacks the right for the request.",
    "oauth": "The authorisation server cannot be reached.",
    "oauth_denied": "The authorisation server refused a sign-in, or its user did.",
    "oauth_mismatch": "The authorisation server sent an invalid answer.",
    "oauth_state": "A sign-in came back to another browser, too late, or twice.",
    "limit": "The token's limit of requests a minute was reached.",
    "too_many": "A caller had too much open at once.",
    "busy": "The process reached its limit of sessions or requests, or of memory.",
    "unread": "A client sent requests without reading their answers.",
    "host": "The name in the Host header is not one of ours. See BRIDGEHEAD_ALLOWED_HOSTS.",
    "origin": "A web page of another origin asked. See BRIDGEHEAD_ALLOWED_ORIGINS.",
    "path": "There is nothing at the path.",
    "idle": "A connection was silent for too long.",
    "connections": "Too many connections were open.",
    "bridge": "The bridge does not serve right now.",
    "token_ended": "The token was revoked or expired during the request.",
    "tokens": "The database was down at the start, so the tokens are not known yet.",
    "version": "The session is of a replica that runs another version.",
    "session": "The session is unknown, or the process that had it is gone.",
    "store": "Redis is unavailable, so the owner of the session or task cannot be found.",
    "task": "The process that runs the task does not answer.",
    "method": "The path does not take the method.",
    "request": "The request or its address is not valid.",
    "accept": "The client does not accept what the path answers with.",
    "content_type": "The body has a type that the path does not take.",
    "body_size": "The body is larger than BRIDGEHEAD_BODY_LIMIT.",
    "slow_body": "The body did not arrive in time.",
    "head_size": "The head of the request is too large.",
    "slow_head": "The head of the request did not arrive in time.",
    "malformed": "The request was not valid HTTP.",
    "displaced": "Every connection was taken, and one of the address with the most made room.",
    "slow_reader": "A client did not read its answer.",
    "descriptors": "The process is out of file descriptors. Raise ulimit -n.",
    "tls": "A client could not agree on TLS.",
    "peer": "A caller other than a replica used the port between replicas.",
    "clock": "The clock of another replica differs by more than five minutes.",
    "csrf": "A form was too old, or another page sent it.",
    "form": "A form could not be read.",
}


def _write_rejections(snapshot: Snapshot) -> Html:
    if not snapshot.rejections:
        return empty("No request has been refused since the start.")
    ranked = sorted(snapshot.rejections.items(), key=lambda item: -item[1])
    rows = [[tag("code", reason), number(count), _REASONS.get(reason, "")] for reason, count in ranked]
    return table(
        [("Reason", False), ("Requests", True), ("Meaning", False)], rows, caption="Refused requests"
    )


def write_sign_in(proof: str, problem: str = "", status: int = 200, *, issuer: str = "") -> Page:
    """Write the page that asks for a token, or links to the authorisation server named by `issuer`."""
    alert = tag("p", problem, class_="problem", role="alert", id="problem") if problem else NOTHING
    body = tag(
        "div",
        tag("h1", "Bridgehead"),
        alert,
        # A link and not a form: `form-action` of our CSP keeps forms on this server, redirects included.
        tag("a", f"Sign in with {issuer}", href=layout.OAUTH_START, class_="button primary", autofocus=True)
        if issuer
        else NOTHING,
        tag("p", "Or sign in" if issuer else "Sign in", " with a token that opens the dashboard."),
        form(
            layout.SIGN_IN,
            proof,
            tag("label", "Token", for_="token"),
            tag(
                "input",
                type="password",
                id="token",
                name="token",
                autocomplete="current-password",
                required=True,
                autofocus=not issuer,
                spellcheck="false",
                aria_describedby="problem" if problem else None,
            ),
            tag("button", "Sign in", class_=None if issuer else "primary"),
        ),
        tag(
            "p",
            "The server's operator makes one with ",
            tag("code", "bridgehead token add NAME --dashboard"),
            f". An access token from {issuer} works too." if issuer else ".",
            class_="hint",
        ),
        class_="sign-in",
    )
    return Page("Sign in", body, status=status)
