"""Templates: renders the pages in `templates/` (Jinja2). Python computes; the templates say how it looks.

Every value is escaped; only what a template or a macro made is markup. Addresses come from `url`, which
encodes its query and leads to this server only. A name that a template does not get is an error, not an empty
text.
"""

from __future__ import annotations

from contextvars import ContextVar
from datetime import UTC, datetime
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_KIB = 1024.0

mount: ContextVar[str] = ContextVar("mount", default="")
"""The path under which a proxy offers this server, such as `/tools`; set for each request."""


def render(template: str, /, **values: object) -> Markup:
    """Render a template; the result is markup."""
    return Markup(_ENVIRONMENT.get_template(template).render(values))  # noqa: S704 - the templates escape


def show(value: object) -> object:
    """Show characters that turn text around or hide it as codes; called for every value of a template."""
    if value is None or isinstance(value, Markup):
        return "" if value is None else value
    text = str(value)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else _show_code(char) for char in text)


def _show_code(char: str) -> str:
    # Python calls any space but U+0020 unprintable, but they are harmless.
    return " " if char.isspace() else f"\\u{ord(char):04x}"


def prose(text: str) -> Markup:
    """Render text with the parts between backticks as code; an unpaired backtick stays as it is."""
    parts = [escape(show(part)) for part in text.split("`")]
    if len(parts) % 2 == 0:
        return Markup("`").join(parts)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else part for index, part in enumerate(parts)
    )


def under_mount(address: str) -> str:
    """Put the proxy's path in front of an address of this server."""
    return mount.get() + address if address.startswith("/") else address


def link(path: str, **query: object) -> str:
    """Return an address of this server, with its query; empty values are left out."""
    parameters = {key: value for key, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(parameters)}" if parameters else path


def url(path: str, **query: object) -> str:
    """Return an address of this server for a page. Raises ValueError for one that leads elsewhere."""
    if not path.startswith("/") or path.startswith(("//", "/\\")):
        message = f"{path[:50]!r} is not an address of this server"
        raise ValueError(message)
    return under_mount(link(path, **query))


# --- numbers and times as people read them -----------------------------------------------------------------


def exact_time(at: float) -> str:
    """Write a time to the second (UTC)."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"


def iso_time(at: float) -> str:
    """Write a time for programs."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def day(at: float) -> str:
    """Write a time as its day (UTC)."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


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


_ENVIRONMENT = Environment(
    loader=PackageLoader(__package__),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=show,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.globals["url"] = url
_ENVIRONMENT.filters.update(
    prose=prose,
    exact_time=exact_time,
    iso_time=iso_time,
    day=day,
    duration=duration,
    latency=latency,
    number=number,
    plural=plural,
    size=size,
)
