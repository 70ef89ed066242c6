"""Arguments: strict about what a tool takes, and exact about what is sent on."""

from typing import Any

import msgspec
import pytest

from bridgehead.mercury.arguments import Chat, CompletionArguments, Edit, Fim
from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.settings import MercurySettings

MESSAGE = {"role": "user", "content": "Well?"}


def decoded(kind: type[CompletionArguments], **given: Any) -> Any:
    return msgspec.convert(given, kind)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (Chat, {"messages": []}),
        (Chat, {"messages": [{**MESSAGE, "role": "narrator"}]}),
        (Chat, {"messages": [{**MESSAGE, "mood": "good"}]}),
        (Chat, {"messages": [MESSAGE], "temperature": 2.1}),
        (Chat, {"messages": [MESSAGE], "max_tokens": 0}),
        (Chat, {"messages": [MESSAGE], "top_p": 1.5}),
        (Chat, {"messages": [MESSAGE], "cache": "maybe"}),
        (Chat, {"messages": [MESSAGE], "timeout_ms": 3_600_001}),
        (Chat, {"messages": [MESSAGE], "model": ""}),
        (Chat, {"messages": [MESSAGE], "colour": "red"}),
        (Fim, {"prompt": "def f():"}),
        (Edit, {"prompt": ""}),
    ],
)
def test_what_does_not_fit_is_refused(kind: type[CompletionArguments], given: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        decoded(kind, **given)


def test_what_is_not_given_is_not_sent() -> None:
    chat = decoded(Chat, messages=[MESSAGE], temperature=0)

    assert msgspec.to_builtins(chat.to_body()) == {"messages": [MESSAGE], "temperature": 0}


def test_an_edit_is_sent_as_one_message() -> None:
    assert decoded(Edit, prompt="<|code_to_edit|>", top_p=0.5).to_body() == {
        "top_p": 0.5,
        "messages": [{"role": "user", "content": "<|code_to_edit|>"}],
    }


def listed(**settings: str) -> dict[str, Any]:
    tools = make_bridge(MercurySettings(settings)).tools
    return {name: tool.input_schema["properties"] for name, tool in tools.items()}


def test_files_are_listed_only_where_the_server_reads_them() -> None:
    without, with_files = listed(), listed(MERCURY_FILES="1")

    assert not any({"files", "file"} & properties.keys() for properties in without.values())
    assert "file" in with_files["mercury_apply_edit"]
    assert "files" in with_files["mercury_chat_completion"]
    assert "files" in with_files["mercury_batch"]


def test_a_chat_lists_every_argument_that_it_takes() -> None:
    taken = {field.encode_name for field in msgspec.structs.fields(Chat)}

    assert listed(MERCURY_FILES="1")["mercury_chat_completion"].keys() == taken


def test_a_stream_takes_more_than_it_lists_and_its_schema_allows_that() -> None:
    stream = make_bridge(MercurySettings({})).tools["mercury_chat_stream"]

    assert stream.input_schema["properties"].keys() < listed()["mercury_chat_completion"].keys()
    assert "additionalProperties" not in stream.input_schema
    assert "Takes all arguments of mercury_chat_completion." in stream.description
