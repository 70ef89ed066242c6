"""Values: what is typed becomes what a schema asks for, or one line says what would be right."""

from typing import Any

import pytest

from bridgehead.commands.tool_arguments import InvalidToolArgument, arguments, kind, usage

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "day": {"type": "integer"},
        "share": {"type": "number"},
        "sure": {"type": "boolean"},
        "text": {"type": "string"},
        "list": {"type": "array", "items": {"type": "string"}},
        "object": {"type": "object"},
        "cache": {"enum": ["use", "bypass"]},
        "level": {"enum": [1, 2]},
        "line": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "glob": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "choice": {"anyOf": [{"enum": ["auto", "none"]}, {"type": "object"}]},
        "any": {},
    },
}


def no_file(path: str) -> str:
    raise FileNotFoundError(2, "No such file", path)


def read(*pairs: str) -> dict[str, Any]:
    return arguments(pairs, SCHEMA, no_file)


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("day=-3", -3),
        ("share=0.5", 0.5),
        ("share=2", 2),
        ("sure=true", True),
        ("sure=no", False),
        ("text=5", "5"),
        ("text=", ""),
        ("text=a=b", "a=b"),
        ('list=["a"]', ["a"]),
        ('object={"a": 1}', {"a": 1}),
        ("cache=use", "use"),
        ("level=2", 2),
        ("line=7", 7),
        ("line=null", None),
        ("glob=*.js", "*.js"),
        ("glob=null", None),
        ("choice=auto", "auto"),
        ('choice={"name": "f"}', {"name": "f"}),
        ("any=[1]", [1]),
        ("any=true", True),
    ],
)
def test_a_value_is_read_as_its_schema_wants_it(pair: str, value: object) -> None:
    (found,) = read(pair).values()

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("pair", "right"),
    [
        ("day=one", "day=integer"),
        ("day=1.5", "day=integer"),
        ("day=true", "day=integer"),
        ("share=much", "share=number"),
        ("sure=perhaps", "sure=boolean"),
        ("list={}", "list=json"),
        ("object=[]", "object=json"),
        ("object={", "object=json"),
        ("cache=never", "cache=use|bypass"),
        ("level=3", "level=1|2"),
        ("line=soon", "line=integer"),
        ("choice=any", "choice=auto|none|json"),
        ("any={", "any=json"),
    ],
)
def test_a_value_that_does_not_fit_is_answered_by_what_would(pair: str, right: str) -> None:
    key, _, text = pair.partition("=")

    with pytest.raises(InvalidToolArgument) as misfit:
        read(pair)

    assert str(misfit.value) == f"{key}={text!r} is not valid. Expected {right}."


def test_a_long_value_is_not_repeated_as_a_whole() -> None:
    with pytest.raises(InvalidToolArgument) as misfit:
        read("day=" + "x" * 5_000)

    assert misfit.value.reason == f"day='{'x' * 40}…' is not valid"


@pytest.mark.parametrize(
    ("pair", "reason"), [("day", "'day' is not key=value"), ("dai=1", "unknown argument 'dai'")]
)
def test_what_is_no_known_key_is_answered_by_those_that_there_are(pair: str, reason: str) -> None:
    with pytest.raises(InvalidToolArgument) as misfit:
        read(pair)

    assert (misfit.value.reason, misfit.value.expected) == (reason, usage(SCHEMA))


def test_everything_that_is_missing_is_named() -> None:
    schema = SCHEMA | {"required": ["day", "text"]}

    with pytest.raises(InvalidToolArgument, match=r"^day is given twice. Expected \[day=integer\] "):
        read("day=1", "day=2")
    with pytest.raises(InvalidToolArgument, match=r"^missing day, text. Expected day=integer "):
        arguments(["sure=1"], schema, no_file)


def test_the_usage_has_what_is_required_first_and_brackets_around_the_rest() -> None:
    schema = {"properties": {"b": {"type": "string"}, "a": {"type": "integer"}}, "required": ["a"]}

    assert usage(schema) == "a=integer [b=text]"
    assert usage({}) == "no arguments"
    assert kind({"anyOf": [{"type": "string"}, {"enum": ["text"]}, {"type": "null"}]}) == "text"


def test_a_file_gives_the_text_of_a_value() -> None:
    assert arguments(["day=@a"], SCHEMA, lambda _: "7\n") == {"day": 7}
    assert arguments(["text=@a"], SCHEMA, lambda path: f"from {path}\n") == {"text": "from a\n"}


def test_a_file_that_cannot_be_read_is_one_line() -> None:
    with pytest.raises(InvalidToolArgument) as misfit:
        read("text=@gone")
    assert str(misfit.value) == "'gone' cannot be read: No such file. Expected text=@FILE."

    with pytest.raises(InvalidToolArgument, match="it is not text in UTF-8"):
        arguments(["text=@picture"], SCHEMA, lambda _: b"\xff".decode())


@pytest.mark.parametrize(
    "pair",
    [
        "share=NaN",
        "share=-Infinity",
        "share=1e999",
        "any=[NaN]",
        'list=["\\ud800"]',
        "text=\udcff",
        "glob=\udcff",
    ],
)
def test_what_no_client_could_send_does_not_fit(pair: str) -> None:
    with pytest.raises(InvalidToolArgument, match=r"is not valid\. Expected "):
        read(pair)


def test_a_text_may_begin_with_the_sign_of_a_file() -> None:
    assert read("text=@@home") == {"text": "@home"}
    assert read("text=a@b") == {"text": "a@b"}
