"""JSON with comments: what is read, and where it is refused."""

import pytest

from bridgehead.install import edit, jsonc
from bridgehead.install.errors import Malformed


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{} x", "1:4: there is more after the end of the document"),
        ("{ /* ", "1:3: this comment has no end"),
        ('{"a": "b', "1:7: this string is not closed on its line, or has a bad escape"),
        ('{"a": "\\q"}', "1:7: this string is not closed on its line, or has a bad escape"),
        ("{a: 1}", '1:2: a name in double quotes, or "}", is missing here'),
        ('{"a" 1}', '1:6: a ":" is missing here'),
        ('{"a": [1 2]}', '1:10: a "," or "]" is missing here'),
        ('{"a": 01}', '1:8: a "," or "}" is missing here'),
        ('{"a": ', "1:7: a value is missing here"),
        ('{\n\t"é": \u00a01}', "2:7: a value is missing here"),
        ("{\r\r  ]", '3:3: a name in double quotes, or "}", is missing here'),
        ('{"a": ' + "9" * 5000 + "}", "1:7: this number is too long"),
        ('{"a": ' + "[" * 300, "1:207: nested more than 200 levels deep"),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(text: str, place: str) -> None:
    with pytest.raises(Malformed) as refused:
        jsonc.parse(text)

    assert str(refused.value) == place


def test_comments_and_a_last_comma_are_read() -> None:
    root = jsonc.parse('// a\n{"x": [1, /* b */ {"y": null,},], "x2": "\\u00e9//", "x": 2}').root

    assert root is not None
    assert root.data == {"x": 2, "x2": "é//"}


def test_half_a_surrogate_pair_stays_an_escape() -> None:
    assert edit.put('{"s": {}}', "json", "s", {"a": {"b": "\ud800é"}}) == (
        '{"s": {\n  "a": {\n    "b": "\\ud800\\u00e9"\n  } \n}}'
    )
