"""HTML: whatever a name holds, it is text on the page."""

import html.parser

import pytest

from bridgehead.host.dashboard.html import Html, escape, join, link, prose, table, tag

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
        self.text += data


def read(made: str) -> Reader:
    reader = Reader()
    reader.feed(made)
    reader.close()
    return reader


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_text_wherever_it_stands(name: str) -> None:
    page = read(tag("p", name, title=name, aria_label=name))

    ((element, attributes),) = page.elements
    assert (element, set(attributes)) == ("p", {"title", "aria-label"})
    assert page.text == attributes["title"]
    if name.isprintable():
        assert page.text == name


def test_characters_that_turn_a_text_around_are_shown_as_codes() -> None:
    assert read(escape("a\u202eb\x00c")).text == "a\\u202eb\\u0000c"
    assert escape("two\nlines\tand\u00a0a space") == "two\nlines\tand a space"


def test_only_what_was_made_here_is_markup() -> None:
    inner = tag("b", "<i>")

    assert tag("p", inner, "<i>", None, [1, inner]) == ("<p><b>&lt;i&gt;</b>&lt;i&gt;1<b>&lt;i&gt;</b></p>")
    assert join(["<", Html("<br>")]) == "&lt;<br>"


def test_attributes_are_named_as_in_html_and_left_out_where_they_say_nothing() -> None:
    made = tag("input", class_="wide", aria_label="A", required=True, disabled=False, value=None)

    assert made == '<input class="wide" aria-label="A" required>'


@pytest.mark.parametrize(
    "address",
    ["javascript:alert(1)", "https://evil.example", "//evil.example", "/\\evil", "data:text/html,x", "x"],
)
def test_an_address_that_leads_elsewhere_is_refused(address: str) -> None:
    for attribute in ("href", "src", "action", "formaction"):
        with pytest.raises(ValueError, match="address"):
            tag("a", **{attribute: address})


def test_what_the_policy_of_the_page_refuses_cannot_be_written() -> None:
    for attribute in ("onclick", "style"):
        with pytest.raises(ValueError, match="policy"):
            tag("a", **{attribute: "x"})


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


def test_a_table_has_heads_for_its_columns_and_rows() -> None:
    page = read(table([("tool", False), ("calls", True)], [["<b>", 3]], caption="Tools"))

    assert [name for name, _ in page.elements if name in {"caption", "th", "td"}] == [
        "caption",
        "th",
        "th",
        "th",
        "td",
    ]
    assert ("td", {"class": "number"}) in page.elements
    assert page.text == "Toolstoolcalls<b>3"
