"""Layout: the frame and headers of every page, and shared elements: tiles, times, badges, forms.

The content security policy lets a page load its own style and script and nothing else: nothing from other
servers, nothing inline. Pages work without the script, which only keeps them up to date.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from importlib import resources

from msgspec import Struct

from bridgehead.mcp.http.message import HeaderPairs, Response

from .html import NOTHING, Child, Html, join, link, tag, under_mount
from .sign_in import OAUTH, PROOF

OVERVIEW = "/"
HOME = "/dashboard"
"""Redirects to the overview: people guess this address."""
BRIDGE = "/dashboard/bridge"
TOOLS = "/dashboard/tools"
TOOL = "/dashboard/tool"
CALL = "/dashboard/call"
CLIENTS = "/dashboard/clients"
FAILURES = "/dashboard/failures"
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
    TOOLS,
    TOOL,
    CALL,
    CLIENTS,
    FAILURES,
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


_MENU = ((OVERVIEW, "Overview"), (TOOLS, "Tools"), (CLIENTS, "Clients"), (FAILURES, "Failures"))

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
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_KIB = 1024.0


class Page(Struct):
    """The content of a page within the frame."""

    title: str
    body: Html
    path: str = ""
    """The menu item to highlight."""
    status: int = 200
    is_live: bool = False
    """Whether the script keeps it up to date."""
    forward: str = ""
    """The address that the browser loads next, at once."""


# --- the frame ---------------------------------------------------------------------------------------------


def render(
    page: Page, *, visitor: str | None, proof: str, cookies: HeaderPairs = (), is_signed_in: bool = True
) -> Response:
    """Return the response with a page. `visitor` is the name to show, None if nobody needs a token."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("title", f"{page.title} · Bridgehead"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", http_equiv="refresh", content=f"0;url={under_mount(page.forward)}")
        if page.forward
        else NOTHING,
        # The version in the address: browsers keep these files for a year (see `serve_file`).
        tag("link", rel="icon", href=link(ICON, v=version_of(ICON)), type="image/svg+xml"),
        tag("link", rel="stylesheet", href=link(STYLE, v=version_of(STYLE))),
        tag("script", src=link(SCRIPT, v=version_of(SCRIPT)), defer=True),
    )
    header = _write_header(page, visitor, proof) if is_signed_in else NOTHING
    # tabindex -1 lets the skip link move the focus here without making it a stop for the Tab key.
    main = tag("main", page.body, id="main", tabindex="-1", data_live=page.is_live or None)
    body = tag("body", tag("a", "Skip to content", href="#main", class_="skip"), header, main)
    html = f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"
    return Response(page.status, html.encode(), (*HEADERS, *cookies))


def _write_header(page: Page, visitor: str | None, proof: str) -> Html:
    menu = [
        tag("a", words, href=path, aria_current="page" if path == page.path else None)
        for path, words in _MENU
    ]
    home = tag(
        "a",
        tag("img", src=link(ICON, v=version_of(ICON)), alt="", width="22", height="22"),
        "Bridgehead",
        href=OVERVIEW,
        class_="home",
    )
    # Hidden until the script shows it: without the script there is nothing to pause.
    pause = tag("button", "Pause", type="button", id="pause", hidden=True) if page.is_live else NOTHING
    sign_out = NOTHING
    if visitor is not None:
        sign_out = form(
            SIGN_OUT, proof, tag("span", visitor, class_="who"), tag("button", "Sign out", class_="quiet")
        )
    return tag(
        "header",
        tag(
            "div",
            home,
            tag("nav", menu, aria_label="Pages"),
            tag("div", pause, sign_out, class_="end"),
            class_="bar",
        ),
    )


def write_forward(title: str, onward: str) -> Page:
    """Write a page that forwards to another address of ours.

    A redirect would not do: after a navigation from another site, a browser sends no SameSite=Strict cookies
    with any redirect that follows, only with a navigation that a page of ours begins.
    """
    body = tag("div", tag("h1", title), tag("p", tag("a", "Continue", href=onward)), class_="sign-in")
    return Page(title, body, forward=onward)


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


# --- elements ----------------------------------------------------------------------------------------------


def form(action: str, proof: str, *fields: Child, **attributes: object) -> Html:
    """Write a form with its CSRF proof."""
    return tag("form", hidden(PROOF, proof), *fields, method="post", action=action, **attributes)


def hidden(name: str, value: object) -> Html:
    """Write a hidden form field."""
    return tag("input", type="hidden", name=name, value=value)


def section(title: str, *children: Child, name: str, note: Child = None) -> Html:
    """Write a section with a heading. `name` is its id, by which the script replaces it."""
    head = tag("h2", title, id=f"{name}-title")
    return tag(
        "section", tag("div", head, note, class_="head"), *children, id=name, aria_labelledby=f"{name}-title"
    )


def tile(label: str, value: str, note: str = "", *, level: str = "") -> Html:
    """Write one figure with its label."""
    small = tag("small", note) if note else NOTHING
    return tag("div", tag("dt", label), tag("dd", tag("b", value), small), class_=f"tile {level}".strip())


def tiles(items: Iterable[Html]) -> Html:
    """Write tiles in a row."""
    return tag("dl", join(items), class_="tiles")


def badge(words: str, level: str) -> Html:
    """Write a small coloured label; its words alone must carry the meaning of the colour."""
    return tag("span", words, class_=f"badge {level}")


def choices(label: str, offered: Iterable[tuple[str, str, bool]]) -> Html:
    """Write links, each with its text, its address and whether it is the current choice."""
    items = [
        tag("li", tag("a", words, href=address, aria_current="true" if is_chosen else None))
        for words, address, is_chosen in offered
    ]
    return tag("ul", items, class_="choices", aria_label=label)


def empty(words: str, *more: Child) -> Html:
    """Write the text of a section that has no content yet."""
    return tag("p", words, *more, class_="empty")


def when(at: float, now: float) -> Html:
    """Write a time as how long ago it was."""
    return _write_time(at, f"{duration(now - at)} ago")


def day(at: float) -> Html:
    """Write a time as its day (UTC)."""
    return _write_time(at, f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}")


def _write_time(at: float, words: str) -> Html:
    """Write a time in the given words; its title has the exact time."""
    exact = datetime.fromtimestamp(at, UTC)
    return tag(
        "time",
        words,
        datetime=exact.isoformat(timespec="seconds"),
        title=f"{exact:%Y-%m-%d %H:%M:%S} UTC",
    )


def duration(seconds: float) -> str:
    """Write a duration in the largest unit that fits."""
    if seconds < _MINUTE:
        return f"{max(0, seconds):.0f} s"
    if seconds < _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    if seconds < 2 * _DAY:
        return f"{seconds / _HOUR:.0f} h"
    return f"{seconds / _DAY:.0f} days"


def latency(seconds: float | None) -> str:
    """Write the duration of a call: three digits, in s or ms."""
    if seconds is None:
        return "–"
    if seconds >= 1:
        return f"{seconds:.3g} s"
    milliseconds = 1000 * seconds
    return f"{milliseconds:.3g} ms" if milliseconds >= 1 else f"{milliseconds:.1f} ms"


def number(value: float) -> str:
    """Write a number: two decimals below 10, thousands separated."""
    if value and abs(value) < 10 and value != int(value):  # noqa: PLR2004 - one digit before the point
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return f"{value:,.0f}"


def plural(count: float, noun: str) -> str:
    """Write a count with its noun."""
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def size(value: float) -> str:
    """Write a number of bytes."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < _KIB:
            return f"{value:.0f} {unit}" if unit in {"B", "KiB"} else f"{value:.1f} {unit}"
        value /= _KIB
    return f"{value:.1f} TiB"
