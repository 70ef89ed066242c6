"""Templates: whatever a name holds, it is text on the page; numbers and times are as people read them."""

import html.parser

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from bridgehead.host.dashboard import templates
from bridgehead.host.dashboard.templates import link, prose, render, show, url

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' autofocus onfocus='alert(1)",
    "</td></table><h1>mine</h1>",
    "&lt;b&gt; & &amp;",
    "]]><!--",
    "javascript:alert(1)",
    "\u202egnp.exe",
    "\x00\x1b[31m",
    "\ud800",
]


class Reader(html.parser.HTMLParser):
    """Reads a page as a browser would: its elements, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if data.strip() or "\n" not in data:  # not the line breaks between elements
            self.text += data


def read(made: str) -> Reader:
    reader = Reader()
    reader.feed(f"{made}")  # a plain text: what is cut from Markup would be escaped again
    reader.close()
    return reader


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_text_wherever_it_stands(name: str) -> None:
    page = read(render("problem.html", title=name, message=name))

    assert [element for element, _ in page.elements] == ["h1", "p", "p", "a"]
    assert page.text.count(str(show(name))) == 2
    field = read(render("revoke.html", name=name, proof=name))
    values = [attributes["value"] for element, attributes in field.elements if element == "input"]
    assert values == [show(name)] * 2
    if name.isprintable():
        assert show(name) == name


def test_characters_that_turn_a_text_around_are_shown_as_codes() -> None:
    assert show("a\u202eb\x00c") == "a\\u202eb\\u0000c"
    assert show("two\nlines\tand\u00a0a space") == "two\nlines\tand a space"
    assert (show(None), show(Markup("<b>"))) == ("", "<b>")


def test_a_value_that_a_template_does_not_get_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="message"):
        render("problem.html", title="x")


@pytest.mark.parametrize(
    "address",
    ["javascript:alert(1)", "https://evil.example", "//evil.example", "/\\evil", "data:text/html,x", "x"],
)
def test_an_address_that_leads_elsewhere_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="address"):
        url(address)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("Run `aoc init` & go", "Run <code>aoc init</code> &amp; go"),
        ("`<b>`", "<code>&lt;b&gt;</code>"),
        ("one ` only <b>", "one ` only &lt;b&gt;"),
        ("", ""),
    ],
)
def test_words_between_backticks_are_code(text: str, html: str) -> None:
    assert prose(text) == html


def test_a_link_encodes_what_it_is_given() -> None:
    assert link("/tools", name='a"b&c=/../', empty="") == "/tools?name=a%22b%26c%3D%2F..%2F"
    assert link("/tools") == "/tools"


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(None, "–"), (0.0004, "0.4 ms"), (0.00236, "2.36 ms"), (0.25, "250 ms"), (1.5, "1.5 s"), (60.0, "60 s")],
)
def test_a_latency_has_its_unit(seconds: float | None, written: str) -> None:
    assert templates.latency(seconds) == written


@pytest.mark.parametrize(
    ("seconds", "written"), [(-1, "0 s"), (59, "59 s"), (90, "2 min"), (7200, "2 h"), (200_000, "2 days")]
)
def test_a_duration_is_in_its_largest_unit(seconds: float, written: str) -> None:
    assert templates.duration(seconds) == written


@pytest.mark.parametrize(
    ("value", "written"), [(0, "0"), (0.25, "0.25"), (4.0, "4"), (12.6, "13"), (12345, "12,345")]
)
def test_a_number_is_easily_read(value: float, written: str) -> None:
    assert templates.number(value) == written


@pytest.mark.parametrize(
    ("value", "written"), [(5, "5 B"), (2048, "2 KiB"), (5 * 2**20, "5.0 MiB"), (2**50, "1024.0 TiB")]
)
def test_a_size_has_its_unit(value: float, written: str) -> None:
    assert templates.size(value) == written


def test_things_are_counted_in_words() -> None:
    assert (templates.plural(1, "file"), templates.plural(0, "file")) == ("1 file", "0 files")
