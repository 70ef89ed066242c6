"""Layout: the frame of every page, its headers, and the pieces that pages share: tiles, times, badges, forms.

The policy (CSP) lets a page load its own style and script and nothing else: no other server, nothing inline.
Whatever a page says works without the script, which only keeps it up to date.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from importlib import resources

from msgspec import Struct

from bridgehead.mcp.http.message import HeaderPairs, Response

from .html import NOTHING, Child, Html, join, link, tag
from .sign_in import OAUTH, PROOF

OVERVIEW = "/"
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
PAGES = (OVERVIEW, BRIDGE, TOOLS, TOOL, CALL, CLIENTS, FAILURES, SIGN_IN, SIGN_OUT, REVOKE, END_SESSION)
OAUTH_PAGES = (OAUTH_START, OAUTH_CALLBACK, OAUTH_FINISH)
"""What there is only where people can sign in at an authorisation server."""
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
    (b"vary", b"accept, cookie"),
)
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_KIB = 1024.0


class Page(Struct):
    """What is shown in the frame."""

    title: str
    body: Html
    path: str = ""
    """Where in the menu it belongs."""
    status: int = 200
    is_live: bool = False
    """Whether the script keeps it up to date."""
    forward: str = ""
    """Where it goes on by itself, at once."""


# --- the frame ---------------------------------------------------------------------------------------------


def render(
    page: Page, *, who: str | None, proof: str, cookies: HeaderPairs = (), is_in: bool = True
) -> Response:
    """Make the response that carries a page. `who` is the name of whoever has signed in."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("title", f"{page.title} · Bridgehead"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", http_equiv="refresh", content=f"0;url={page.forward}") if page.forward else NOTHING,
        tag("link", rel="icon", href=link(ICON, v=version_of(ICON)), type="image/svg+xml"),
        tag("link", rel="stylesheet", href=link(STYLE, v=version_of(STYLE))),
        tag("script", src=link(SCRIPT, v=version_of(SCRIPT)), defer=True),
    )
    header = _write_header(page, who, proof) if is_in else NOTHING
    main = tag("main", page.body, id="main", tabindex="-1", data_live=page.is_live or None)
    body = tag("body", tag("a", "Skip to content", href="#main", class_="skip"), header, main)
    whole = f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"
    return Response(page.status, whole.encode(), (*HEADERS, *cookies))


def _write_header(page: Page, who: str | None, proof: str) -> Html:
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
    pause = tag("button", "Pause", type="button", id="pause", hidden=True) if page.is_live else NOTHING
    leave = NOTHING
    if who is not None:
        leave = form(
            SIGN_OUT, proof, tag("span", who, class_="who"), tag("button", "Sign out", class_="quiet")
        )
    return tag(
        "header",
        tag(
            "div",
            home,
            tag("nav", menu, aria_label="Pages"),
            tag("div", pause, leave, class_="end"),
            class_="bar",
        ),
    )


def write_forward(title: str, onward: str) -> Page:
    """Make a page that goes on to another one of ours by itself.

    A redirect would not do: a browser that another site sends brings no strict cookies along, however often
    it is sent on, until a page of ours sends it.
    """
    body = tag("div", tag("h1", title), tag("p", tag("a", "Continue", href=onward)), class_="sign-in")
    return Page(title, body, forward=onward)


def render_forward(page: Page) -> Response:
    """Make the response that carries such a page. It sets no cookie: those that were kept back are there."""
    return render(page, who=None, proof="", is_in=False)


def redirect(path: str, cookies: HeaderPairs = ()) -> Response:
    """Send a browser to another page after a form, or to the authorisation server."""
    return Response(303, b"", ((b"location", path.encode()), (b"cache-control", b"no-store"), *cookies))


@cache
def read_file(path: str) -> bytes:
    """Return one of the files that the page loads."""
    return (resources.files(__package__) / path.rpartition("/")[2]).read_bytes()


@cache
def version_of(path: str) -> str:
    """Return what changes with a file, so that a browser may keep it for good."""
    return hashlib.sha256(read_file(path)).hexdigest()[:12]


def serve_file(path: str) -> Response:
    """Answer with one of the files that the page loads."""
    headers = (
        (b"content-type", FILES[path]),
        (b"cache-control", b"public, max-age=31536000, immutable"),
        (b"x-content-type-options", b"nosniff"),
        (b"cross-origin-resource-policy", b"same-origin"),
    )
    return Response(200, read_file(path), headers)


# --- pieces ------------------------------------------------------------------------------------------------


def form(action: str, proof: str, *fields: Child, **attributes: object) -> Html:
    """Make a form with the proof that it was filled in here."""
    hidden = tag("input", type="hidden", name=PROOF, value=proof)
    return tag("form", hidden, *fields, method="post", action=action, **attributes)


def hidden(name: str, value: object) -> Html:
    """Make a field that nobody sees."""
    return tag("input", type="hidden", name=name, value=value)


def section(title: str, *children: Child, name: str, note: Child = None) -> Html:
    """Make a part of a page under its heading. The script replaces it by its name when it changes."""
    head = tag("h2", title, id=f"{name}-title")
    return tag(
        "section", tag("div", head, note, class_="head"), *children, id=name, aria_labelledby=f"{name}-title"
    )


def tile(label: str, value: str, note: str = "", *, level: str = "") -> Html:
    """Make a number that stands for itself."""
    small = tag("small", note) if note else NOTHING
    return tag("div", tag("dt", label), tag("dd", tag("b", value), small), class_=f"tile {level}".strip())


def tiles(made: Iterable[Html]) -> Html:
    """Put numbers beside each other."""
    return tag("dl", join(made), class_="tiles")


def badge(words: str, level: str) -> Html:
    """Make a small label; its words say what its colour says."""
    return tag("span", words, class_=f"badge {level}")


def empty(words: str, *more: Child) -> Html:
    """Say that there is nothing yet, and what would be here."""
    return tag("p", words, *more, class_="empty")


def when(at: float, now: float) -> Html:
    """Write a moment as how long ago it was; the exact time is in its title."""
    exact = datetime.fromtimestamp(at, UTC)
    return tag(
        "time",
        f"{duration(now - at)} ago",
        datetime=exact.isoformat(timespec="seconds"),
        title=f"{exact:%Y-%m-%d %H:%M:%S} UTC",
    )


def duration(seconds: float) -> str:
    """Write how long something takes, in the largest unit that fits."""
    if seconds < _MINUTE:
        return f"{max(0, seconds):.0f} s"
    if seconds < _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    if seconds < 2 * _DAY:
        return f"{seconds / _HOUR:.0f} h"
    return f"{seconds / _DAY:.0f} days"


def latency(seconds: float | None) -> str:
    """Write how long a call took."""
    if seconds is None:
        return "–"
    if seconds >= 1:
        return f"{seconds:.3g} s"
    milliseconds = 1000 * seconds
    return f"{milliseconds:.3g} ms" if milliseconds >= 1 else f"{milliseconds:.1f} ms"


def number(value: float) -> str:
    """Write a number so that it is easily read."""
    if value and abs(value) < 10 and value != int(value):  # noqa: PLR2004 - one digit before the point
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return f"{value:,.0f}"


def plural(count: float, noun: str) -> str:
    """Write how many of something there are."""
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def size(value: float) -> str:
    """Write a number of bytes."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < _KIB:
            return f"{value:.0f} {unit}" if unit in {"B", "KiB"} else f"{value:.1f} {unit}"
        value /= _KIB
    return f"{value:.1f} TiB"
