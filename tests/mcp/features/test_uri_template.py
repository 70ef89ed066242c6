"""URI templates: what they match, and the values that they take out."""

from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.mcp import DeclarationError
from bridgehead.mcp.features.uri_template import UriTemplate

segments = st.text(min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("template", "uri", "expected"),
    [
        ("a://{x}", "a://1", {"x": "1"}),
        ("a://{x}", "a://", None),
        ("a://{x}", "a://1/2", None),
        ("a://{x}", "b://1", None),
        ("a://{x}", "a://1\n", {"x": "1\n"}),
        ("a://{x}/{y}", "a://1/2", {"x": "1", "y": "2"}),
        ("a://{x}/z", "a://1/z", {"x": "1"}),
        ("a://{x}/z", "a://1/zz", None),
        ("a://{+x}", "a://1/2/3", {"x": "1/2/3"}),
        ("a://{x}/{+y}.txt", "a://1/2/3.txt", {"x": "1", "y": "2/3"}),
        ("a.b://{x}", "aab://1", None),
        ("a://{x}", "a://%C3%A4%20b", {"x": "ä b"}),
        ("a://{x}", "a://a%2Fb", {"x": "a/b"}),
        ("a://{x}", "a://%ff", {"x": "\ufffd"}),
        ("a://(.*)/{x}", "a://anything/1", None),
    ],
)
def test_a_uri_is_matched_whole_and_gives_its_variables(
    template: str, uri: str, expected: dict[str, str] | None
) -> None:
    assert UriTemplate(template).match(uri) == expected


@pytest.mark.parametrize(
    "template", ["a://b", "", "a://{}", "a://{x}/{x}", "a://{x}/{+x}", "a://{a-b}", "a://{1}", "a://{x}/{2b}"]
)
def test_a_template_needs_variables_each_with_its_own_name(template: str) -> None:
    with pytest.raises(ValueError, match="variable"):
        UriTemplate(template)


@given(author=segments, title=segments)
def test_any_values_that_were_put_into_a_uri_come_out_again(author: str, title: str) -> None:
    uri = f"lib://{quote(author, safe='')}/books/{quote(title, safe='')}"

    assert UriTemplate("lib://{author}/books/{title}").match(uri) == {"author": author, "title": title}


@given(parts=st.lists(segments, min_size=1, max_size=5))
def test_a_path_of_any_segments_comes_out_whole(parts: list[str]) -> None:
    uri = "lib://files/" + "/".join(quote(part, safe="") for part in parts)

    assert UriTemplate("lib://files/{+path}").match(uri) == {"path": "/".join(parts)}


@given(uri=st.text())
def test_any_text_is_matched_or_not_and_never_fails(uri: str) -> None:
    values = UriTemplate("a:{a}/{+b}").match(uri)

    assert values is None or set(values) == {"a", "b"}


@pytest.mark.parametrize(
    ("template", "uri", "expected"),
    [
        ("q://notes{?tag,page}", "q://notes", {}),
        ("q://notes{?tag,page}", "q://notes?tag=a%20b&page=2", {"tag": "a b", "page": "2"}),
        ("q://notes{?tag}", "q://notes?other=1", None),
        ("q://notes/{day}{?tag}", "q://notes/mon?tag=x", {"day": "mon", "tag": "x"}),
        ("q://files/{path*}", "q://files/a/b", {"path": "a/b"}),
    ],
)
def test_a_query_may_be_left_out_and_a_star_takes_any_number_of_segments(
    template: str, uri: str, expected: Any
) -> None:
    assert UriTemplate(template).match(uri) == expected


@pytest.mark.parametrize("template", ["{a}", "no scheme/{a}", "x://{a}{?a}", "x://{a*}/{+b}"])
def test_a_template_that_is_no_uri_is_refused(template: str) -> None:
    with pytest.raises(DeclarationError):
        UriTemplate(template)
