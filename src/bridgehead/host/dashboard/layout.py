"""Layout: the addresses, the frame and the headers of every page.

The content security policy lets a page load its own style and script and nothing else: nothing from other
servers, nothing inline. Pages work without the script, which only keeps them up to date.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources

from markupsafe import Markup
from msgspec import Struct

from bridgehead.mcp.http.message import HeaderPairs, Response

from .sign_in import OAUTH
from .templates import render as render_template
from .templates import under_mount, url

OVERVIEW = "/"
HOME = "/dashboard"
"""Redirects to the overview: people guess this address."""
BRIDGE = "/dashboard/bridge"
CLIENTS = "/dashboard/clients"
FAILURES = "/dashboard/failures"
CALLS = "/dashboard/calls"
SIGN_IN = "/dashboard/sign-in"
SIGN_OUT = "/dashboard/sign-out"
OAUTH_START = f"{OAUTH}start"
OAUTH_CALLBACK = f"{OAUTH}callback"
OAUTH_FINISH = f"{OAUTH}finish"
REVOKE = "/dashboard/revoke"
END_SESSION = "/dashboard/end-session"
STYLE = "/dashboard/style.css"
SCRIPT = "/dashboard/page.js"
ICON = "/dashboard/icon.svg"
PAGES = (
    OVERVIEW,
    HOME,
    BRIDGE,
    CLIENTS,
    FAILURES,
    CALLS,
    SIGN_IN,
    SIGN_OUT,
    REVOKE,
    END_SESSION,
)
OAUTH_PAGES = (OAUTH_START, OAUTH_CALLBACK, OAUTH_FINISH)
"""Pages of the sign-in at an authorisation server; absent without one."""
FILES = {STYLE: b"text/css; charset=utf-8", SCRIPT: b"text/javascript; charset=utf-8", ICON: b"image/svg+xml"}


def list_paths(*, with_oauth: bool) -> tuple[str, ...]:
    """List every path of the dashboard."""
    return (*PAGES, *FILES, *(OAUTH_PAGES if with_oauth else ()))


_MENU = ((OVERVIEW, "Overview"), (CLIENTS, "Clients"), (FAILURES, "Failures"), (CALLS, "Calls"))

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: HeaderPairs = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", POLICY.encode()),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    # `/` depends on Accept (a page, or 404 for programs), and all pages on the visitor's cookie.
    (b"vary", b"accept, cookie"),
)


class Page(Struct):
    """The content of a page within the frame."""

    title: str
    body: Markup
    path: str = ""
    """The menu item to highlight."""
    status: int = 200
    is_live: bool = False
    """Whether the script keeps it up to date."""
    forward: str = ""
    """The address that the browser loads next, at once."""


def render(
    page: Page, *, visitor: str | None, proof: str, cookies: HeaderPairs = (), is_signed_in: bool = True
) -> Response:
    """Return the response with a page. `visitor` is the name to show, None if nobody needs a token."""
    # The version in the address: browsers keep these files for a year (see `serve_file`).
    files = {path: url(path, v=version_of(path)) for path in FILES}
    html = render_template(
        "frame.html",
        page=page,
        menu=_MENU,
        visitor=visitor,
        proof=proof,
        is_signed_in=is_signed_in,
        icon=files[ICON],
        style=files[STYLE],
        script=files[SCRIPT],
    )
    return Response(page.status, html.encode(), (*HEADERS, *cookies))


def write_problem(title: str, message: str, status: int) -> Page:
    """Write the page of a problem."""
    return Page(title, render_template("problem.html", title=title, message=message), status=status)


def write_forward(title: str, onward: str) -> Page:
    """Write a page that forwards to another address of ours.

    A redirect would not do: after a navigation from another site, a browser sends no SameSite=Strict cookies
    with any redirect that follows, only with a navigation that a page of ours begins.
    """
    return Page(title, render_template("forward.html", title=title, onward=onward), forward=onward)


def render_forward(page: Page) -> Response:
    """Return the response with a forwarding page; it sets no cookie, because the browser has its own."""
    return render(page, visitor=None, proof="", is_signed_in=False)


def redirect(path: str, cookies: HeaderPairs = ()) -> Response:
    """Redirect after a form, or to the authorisation server."""
    # 303, so that the browser follows with GET, whatever the method was.
    return Response(
        303, b"", ((b"location", under_mount(path).encode()), (b"cache-control", b"no-store"), *cookies)
    )


@cache
def read_file(path: str) -> bytes:
    """Return a file of the dashboard by its path on the server."""
    return (resources.files(__package__) / path.rpartition("/")[2]).read_bytes()


@cache
def version_of(path: str) -> str:
    """Return a short hash of a file, for its address: a changed file has another address."""
    return hashlib.sha256(read_file(path)).hexdigest()[:12]


def serve_file(path: str) -> Response:
    """Return the response with a file that browsers cache for a year."""
    headers = (
        (b"content-type", FILES[path]),
        (b"cache-control", b"public, max-age=31536000, immutable"),
        (b"x-content-type-options", b"nosniff"),
        (b"cross-origin-resource-policy", b"same-origin"),
    )
    return Response(200, read_file(path), headers)
