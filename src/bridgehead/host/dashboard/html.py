"""HTML: elements made in Python, so that every text is escaped and only values of type `Html` are markup.

    tag("a", name, href="/tools", class_="quiet")

A child of type `Html` is inserted unescaped; anything else becomes text. Attributes are always quoted.
Addresses come from `link`, which encodes its query and leads to this server only.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from html import escape as _escape
from urllib.parse import urlencode

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
"""Elements without an end tag. SVG elements are not listed: unclosed, they would contain the next one."""
_ADDRESSES = ("href", "src", "action", "formaction")
_IMAGE = (
    "data:image/png;base64,",
    "data:image/jpeg;base64,",
    "data:image/gif;base64,",
    "data:image/webp;base64,",
)


class Html(str):
    """Markup made by this module; only this goes into a page unescaped."""

    __slots__ = ()


Child = object
"""`Html`, a text, a number, a list of these, or None for nothing."""
NOTHING = Html()


def escape(value: object) -> Html:
    """Return a value as text in HTML. Characters that turn text around or hide it are shown as codes."""
    text = str(value)
    if not text.isprintable():
        text = "".join(char if char.isprintable() or char in "\n\t" else _show_code(char) for char in text)
    return Html(_escape(text))


def _show_code(char: str) -> str:
    # Python calls any space but U+0020 unprintable, but they are harmless.
    return " " if char.isspace() else f"\\u{ord(char):04x}"


def join(children: Iterable[Child]) -> Html:
    """Put children one after another."""
    return Html("".join(_child(child) for child in children))


def prose(text: str) -> Html:
    """Render text with the parts between backticks as code; an unpaired backtick stays as it is."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return join(tag("code", part) if index % 2 else part for index, part in enumerate(parts))


def _child(child: Child) -> str:
    if isinstance(child, Html):
        return child
    if child is None:
        return ""
    if isinstance(child, list | tuple):
        return join(child)
    return escape(child)


def tag(name: str, /, *children: Child, **attributes: object) -> Html:
    """Make an element. In attribute names a trailing underscore is dropped, others become hyphens.

    An attribute that is True has no value, one that is False or None is left out.
    """
    written = "".join(
        _attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items()
    )
    if name in _VOID and not children:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{join(children)}</{name}>")


def _attribute(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    if name in _ADDRESSES:
        _check_address(str(value))
        value = under_mount(str(value))
    if name.startswith("on") or name == "style":
        message = f"{name} would be refused by the policy of the page"
        raise ValueError(message)
    return f' {name}="{escape(value)}"'


def _check_address(address: str) -> None:
    """Refuse an address that leads elsewhere or runs something."""
    is_local = address.startswith("/") and not address.startswith(("//", "/\\"))
    if not (is_local or address.startswith(("#", *_IMAGE))):
        message = f"{address[:50]!r} is not an address of this server"
        raise ValueError(message)


mount: ContextVar[str] = ContextVar("mount", default="")
"""The path under which a proxy offers this server, such as `/tools`; set for each request."""


def under_mount(address: str) -> str:
    """Put the proxy's path in front of an address of this server."""
    return mount.get() + address if address.startswith("/") else address


def link(path: str, **query: object) -> str:
    """Return an address of this server, with its query."""
    parameters = {key: value for key, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(parameters)}" if parameters else path


def table(heads: Iterable[tuple[str, bool]], rows: Iterable[Iterable[Child]], *, caption: str) -> Html:
    """Make a table; each head says whether its column holds numbers. The caption is for screen readers."""
    columns = list(heads)
    head = [
        tag("th", text, scope="col", class_="number" if is_number else None) for text, is_number in columns
    ]
    body = [
        tag("tr", [_cell(cell, index, is_number=columns[index][1]) for index, cell in enumerate(row)])
        for row in rows
    ]
    content = tag("table", tag("caption", caption), tag("thead", tag("tr", head)), tag("tbody", body))
    # Wide tables scroll by themselves, also by keyboard, so that the page never does.
    return tag("div", content, class_="scroll", tabindex="0", role="group", aria_label=caption)


def _cell(cell: Child, index: int, *, is_number: bool) -> Html:
    if index == 0 and not is_number:  # the name of the row, for screen readers
        return tag("th", cell, scope="row")
    return tag("td", cell, class_="number" if is_number else None)
