"""JSON edit: our entries go in as their neighbours are written, and out without a trace."""

import pytest

from bridgehead.install import edit, json_edit


def test_of_two_members_of_one_name_the_last_is_edited() -> None:
    text = '{"s": {"aoc": 1}, "s": {"aoc": {"b": 2}}}'

    assert edit.put(text, "json", "s", {"aoc": {"b": 3}}) == '{"s": {"aoc": 1}, "s": {"aoc": {\n  "b": 3\n}}}'


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('{"s": {"a": {}, // mine\n "z": 1}}', '{"s": { // mine\n "z": 1}}'),
        ('{"s": {"a": {} /* why */, "z": 1}}', '{"s": { /* why */ "z": 1}}'),
        ('{"s": {"a": {}, /* later */}}', '{"s": { /* later */}}'),
        ('{"s": {"a": {},}, "t": 1}', '{ "t": 1}'),
        ('{"s": {\n "a": {}, // mine\n "z": 1}}', '{"s": {\n // mine\n "z": 1}}'),
        ('{"s": {\n "a": {}, "z": 1}}', '{"s": {\n "z": 1}}'),
        ('{"s": {"a": {}}}', "{}"),
        ('{"s": {"a": {}}}\n', "{}\n"),
        ('{"s": {\n\t"a": {}\n}, "t": 1}', '{ "t": 1}'),
        ('{"t": 1}', '{"t": 1}'),
        ("// nothing\n", "// nothing\n"),
        ('{"s": {/* none */ "a": {}}}', '{"s": {/* none */}}'),
    ],
)
def test_what_others_wrote_around_our_entry_stays(text: str, after: str) -> None:
    assert edit.take(text, "json", "s", ["a"]) == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (
            '{\n    "s": {\n        "z": 1\n    }\n}',
            '{\n    "s": {\n        "z": 1,\n        "a": {\n            "b": 2\n        }\n    }\n}',
        ),
        ('{\n\t"t": 1\n}\n', '{\n\t"t": 1,\n\t"s": {\n\t\t"a": {\n\t\t\t"b": 2\n\t\t}\n\t}\n}\n'),
        (
            '{\r\n  "t": 1\r\n}',
            '{\r\n  "t": 1,\r\n  "s": {\r\n    "a": {\r\n      "b": 2\r\n    }\r\n  }\r\n}',
        ),
    ],
    ids=["four spaces", "tabs", "lines of Windows"],
)
def test_an_entry_is_indented_and_its_lines_end_as_those_around_it(text: str, after: str) -> None:
    assert json_edit.put(text, "s", "a", {"b": 2}) == after
    assert json_edit.take(after, "s", "a") == text


def test_an_entry_that_says_the_same_is_left_as_it_is_written() -> None:
    text = '{"s": {"a": {"c": 1,   "b": true}}}'

    assert json_edit.put(text, "s", "a", {"b": True, "c": 1}) == text
    assert json_edit.put(text, "s", "a", {"b": 1, "c": 1}) != text


def test_a_file_of_nothing_but_our_entry_is_gone_with_it() -> None:
    made = json_edit.put(None, "s", "a", {"b": 2})

    assert json_edit.read(made, "s") == {"s": {"a": {"b": 2}}}
    assert json_edit.take(made, "s", "a") is None


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [(1, True, False), (1, 1.0, False), ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True)],
)
def test_values_are_the_same_where_their_json_is(one: object, other: object, *, is_same: bool) -> None:
    assert json_edit.same(one, other) is is_same
