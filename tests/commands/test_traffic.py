"""Traffic: what passes between a client and a server, read without changing it."""

import io

from rich.console import Console

from bridgehead.commands.traffic import Traffic, TrafficEntry, show
from tests.support.clock import Clock


def test_an_answer_names_what_it_answers_and_how_long_that_took() -> None:
    entries: list[TrafficEntry] = []
    traffic = Traffic(entries.append, Clock(step=0.1).monotonic)
    traffic.add("client", b'{"id":1,"method":"tools/call","params":{"name":"greet"}}')
    traffic.add("server", b'{"id":1,"result":{}}')

    asked, answered = entries
    assert (asked.label, asked.milliseconds, asked.size) == ("tools/call greet", None, 56)
    assert answered.label == "tools/call greet"
    assert answered.milliseconds is not None
    assert 100 < answered.milliseconds < 500


def test_questions_of_the_server_are_told_from_those_of_the_client() -> None:
    entries: list[TrafficEntry] = []
    traffic = Traffic(entries.append)
    traffic.add("client", b'{"id":1,"method":"tools/list"}')
    traffic.add("server", b'{"id":1,"method":"elicitation/create"}')
    traffic.add("client", b'{"id":1,"result":{}}')
    traffic.add("server", b'{"id":1,"result":{}}')

    assert [entry.label for entry in entries] == [
        "tools/list",
        "elicitation/create",
        "elicitation/create",
        "tools/list",
    ]


def test_errors_are_marked_and_what_is_not_json_is_shown_as_not_mcp() -> None:
    entries: list[TrafficEntry] = []
    traffic = Traffic(entries.append)
    traffic.add("server", b'{"id":1,"error":{"code":1,"message":"no"}}')
    traffic.add("server", b'{"id":2,"result":{"isError":true}}')
    undecoded = traffic.add("client", b"hello\xff"), traffic.add("client", b"[1]")

    assert [entry.is_error for entry in entries] == [True, True, False, False]
    assert entries[2].label == "(not MCP)"
    assert undecoded == ({}, {})


def test_a_line_shows_hostile_names_as_text() -> None:
    console = Console(file=io.StringIO(), width=100, color_system=None)
    show(console, TrafficEntry(0.0, "client", "tools/call [red]x[/]", 1234, None, is_error=False))

    assert isinstance(console.file, io.StringIO)
    assert "→ tools/call [red]x[/]  1,234 bytes" in console.file.getvalue()
