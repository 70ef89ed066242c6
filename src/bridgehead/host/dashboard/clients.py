"""Clients: computes the pages of clients (tokens, limits, sessions), of failures, and the sign-in. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ..auth.grants import EVERYTHING, Grant
from ..auth.tokens import KnownToken
from . import layout
from .charts import Meter, draw_meter
from .layout import Page
from .listing import Listing
from .overview import group_failures, name_notices
from .snapshot import Snapshot
from .templates import number, render, size

_RESOURCES = ("sessions", "streams", "requests", "connections", "bytes")
"""Limited per caller, each in a column."""


class TokenRow(Struct, frozen=True):
    """One token as the page shows it."""

    name: str
    bridges: str
    rights: str
    per_minute: float | None
    requests: int
    created: float
    used: float | None
    expires: float | None


def write_clients(
    snapshot: Snapshot,
    tokens: Sequence[KnownToken] | None,
    proof: str,
    listing: Listing,
    *,
    connect: Mapping[str, object],
    owner: str = "",
    may_act: bool,
    may_ask: bool = False,
) -> Page:
    """Write the page of tokens, limits and sessions. `tokens` is None if callers need none.

    `owner` is the name of this process among the replicas, which the forms that end a session carry.
    `connect` has the commands for clients. With `may_ask` the page offers to sign in again for the right to
    act.
    """
    rows = None if tokens is None else [_describe_token(token, snapshot) for token in tokens]
    body = render(
        "clients.html",
        query=listing.filter,
        tokens=None
        if rows is None
        else listing.page(listing.matching(rows, lambda row: [row.name]), "tokens"),
        resources=[f"#{resource.capitalize()}" for resource in _RESOURCES],
        callers=listing.page(listing.matching(_rank_callers(snapshot), lambda row: [row[0]]), "callers"),
        sessions=listing.page(
            listing.matching(snapshot.sessions, lambda session: [session.client, session.caller]), "sessions"
        ),
        connect=connect,
        now=snapshot.taken,
        proof=proof,
        owner=owner,
        may_act=may_act,
        may_ask=may_ask,
    )
    return Page("Clients", body, layout.CLIENTS, is_live=True)


def _describe_token(token: KnownToken, snapshot: Snapshot) -> TokenRow:
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
    return TokenRow(
        name,
        "all" if has_all else ", ".join(bridges) or "none",
        ", ".join(right for right, has_it in rights.items() if has_it)
        + (f" ({', '.join(grant.tools)})" if grant.tools else ""),
        grant.per_minute,
        snapshot.clients.get(name, {}).get("made", 0),
        token.created,
        snapshot.token_uses.get(grant.token_id),
        grant.expires,
    )


def _rank_callers(snapshot: Snapshot) -> list[tuple[str, list[Meter], str]]:
    """Return what each caller has open and its time in threads, the closest to one of its limits first."""
    limits = snapshot.limits
    callers = {
        name: counts
        for name, counts in snapshot.clients.items()
        if any(counts.get(resource) for resource in (*_RESOURCES, "thread_ms"))
    }

    def rank(caller: tuple[str, dict[str, int]]) -> tuple[float, str]:
        name, counts = caller
        shares = (
            counts.get(resource, 0) / limits[resource] for resource in _RESOURCES if limits.get(resource)
        )
        return -max(shares, default=0.0), name

    def measure(resource: str, count: int) -> Meter:
        limit = limits.get(resource, 0)
        if not limit:
            return Meter(resource, number(count), 0.0)
        words = size if resource == "bytes" else number
        return draw_meter(resource, count, limit, f"{words(count)} of {words(limit)}")

    return [
        (
            name,
            [measure(resource, counts.get(resource, 0)) for resource in _RESOURCES],
            f"{counts.get('thread_ms', 0) / 1000:,.1f} s",
        )
        for name, counts in sorted(callers.items(), key=rank)
    ]


def ask_to_revoke(name: str, proof: str) -> Page:
    """Write the confirmation of a revocation."""
    return Page("Revoke a token", render("revoke.html", name=name, proof=proof), layout.CLIENTS)


def write_problems(snapshot: Snapshot, grant: Grant, listing: Listing) -> Page:
    """Write the page of recent failures, notices and rejected requests."""
    readable = [failure for failure in snapshot.failures if grant.may_read(failure.bridge)]
    failures = listing.matching(
        readable, lambda one: [one.tool, one.bridge, one.client, one.problem, one.next_step, one.request]
    )
    ranked = sorted(snapshot.rejections.items(), key=lambda item: -item[1])
    body = render(
        "failures.html",
        query=listing.filter,
        failures=listing.page(group_failures(failures), "failures"),
        notices=name_notices(snapshot.notices),
        rejections=[(reason, count, _REASONS.get(reason, "")) for reason, count in ranked],
        now=snapshot.taken,
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


def write_sign_in(proof: str, problem: str = "", status: int = 200, *, issuer: str = "") -> Page:
    """Write the page that asks for a token, or links to the authorisation server named by `issuer`."""
    body = render("sign_in.html", proof=proof, problem=problem, issuer=issuer)
    return Page("Sign in", body, status=status)
