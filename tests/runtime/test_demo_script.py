"""Demo script: a person sees what is asked and what comes back, and a failing bridge is noticed."""

import io
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import bridgehead
from bridgehead.runtime.demo_script import MAX_CHARACTERS, MAX_LINES, REVISION, DemoScript
from tests.support.waiting import PATIENCE

GREETER = (sys.executable, str(Path(__file__).parents[2] / "examples" / "greeter.py"))

ANSWER = """
import json, os, sys, time
def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()
def hear():
    return json.loads(sys.stdin.readline())
def shake_hands(name="scripted"):
    say({"id": hear()["id"], "result": {"serverInfo": {"name": name, "version": "1"}}})
"""


def scripted(program: str) -> tuple[str, ...]:
    """Give the command of a bridge that does what no real one should."""
    return (sys.executable, "-c", ANSWER + program)


def screen() -> Console:
    return Console(file=io.StringIO(), width=200, color_system=None)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_call_and_its_answer_are_shown_and_returned() -> None:
    console = screen()

    with DemoScript(console, "greeter", os.environ, command=GREETER) as tour:
        result = tour.call("Say [hello].", "greet", {"name": "Zoë", "language": "fr"})

    assert result["structuredContent"] == {"greeting": "Bonjour, Zoë!", "letters": 13}
    assert tour.failures == 0
    text = shown(console)
    assert "greeter 1.0.0" in text
    assert "\nSay [hello].\n" in text
    assert '→ greet(name="Zoë", language="fr")' in text
    assert "Bonjour, Zoë!" in text.split("←")[1]


def test_the_bridge_is_of_the_package_that_the_tour_is_of() -> None:
    console = screen()
    program = "import bridgehead; shake_hands(bridgehead.__file__); sys.stdin.read()"

    with DemoScript(console, "any", {}, command=(sys.executable, "-S", "-c", ANSWER + program)):
        pass

    assert str(Path(bridgehead.__file__)) in shown(console)


def test_progress_is_told_where_somebody_listens() -> None:
    heard: list[dict[str, Any]] = []

    with DemoScript(screen(), "greeter", os.environ, command=GREETER) as tour:
        tour.call("Listen.", "greet", {"name": "Ada"}, heard.append)
        tour.call("Do not.", "greet", {"name": "Grace"})

    assert [(one["progress"], one["message"]) for one in heard] == [(1, "Thinking of Ada")]


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [("greet", {"name": "Ada", "langauge": "fr"}, "langauge"), ("wave", {}, "wave")],
)
def test_a_tools_error_and_the_protocols_are_shown_alike(
    tool: str, arguments: dict[str, Any], said: str
) -> None:
    console = screen()

    with DemoScript(console, "greeter", os.environ, command=GREETER) as tour:
        result = tour.call("A slip of the pen.", tool, arguments)

    assert result["isError"] is True
    assert said in result["content"][0]["text"]
    assert said in shown(console).split("←")[1]
    assert tour.failures == 0


def test_a_long_answer_is_cut() -> None:
    console = screen()

    with DemoScript(console, "greeter", os.environ, command=GREETER) as tour:
        tour.call("At length.", "greet", {"name": "a" * 2 * MAX_CHARACTERS})

    answer = shown(console).split("←")[1]
    assert answer.count("a") <= MAX_CHARACTERS
    assert answer.rstrip().endswith("…")


def test_other_requests_than_calls_can_be_made() -> None:
    with DemoScript(screen(), "greeter", os.environ, command=GREETER) as tour:
        read = tour.request("resources/read", {"uri": "greeter://languages"})

    assert read["contents"][0]["text"] == "en\nde\nfr"


def test_what_does_not_hold_is_counted() -> None:
    with DemoScript(screen(), "greeter", os.environ, command=GREETER) as tour:
        tour.expect(holds=True)
        tour.expect(holds=False)
        tour.expect(holds=False)

    assert tour.failures == 2


def test_an_answer_without_text_is_shown_by_its_kind() -> None:
    program = 'shake_hands(); hear(); say({"id": hear()["id"], "result": {"content": [{"type": "image"}]}})'
    console = screen()

    with DemoScript(console, "x", os.environ, command=scripted(program)) as tour:
        tour.call("A picture.", "paint", {})

    assert "image" in shown(console).split("←")[1]


def test_the_handshake_is_finished_before_the_first_call() -> None:
    program = """
first = hear()
say({"id": first["id"], "result": {"serverInfo": {"name": "scripted", "version": "1"}}})
second, third = hear(), hear()
text = json.dumps([first["params"]["protocolVersion"], second["method"], third["method"]])
say({"id": third["id"], "result": {"content": [{"type": "text", "text": text}]}})
"""

    with DemoScript(screen(), "x", os.environ, command=scripted(program)) as tour:
        result = tour.call("What did you hear?", "tell", {})

    heard = json.loads(result["content"][0]["text"])
    assert heard == [REVISION, "notifications/initialized", "tools/call"]


def test_what_the_bridge_says_by_itself_is_no_answer() -> None:
    program = """
say({"method": "notifications/progress", "params": {}})
say({"id": 1, "method": "ping"})
say({"id": 99, "result": {}})
shake_hands()
"""
    console = screen()

    with DemoScript(console, "x", os.environ, command=scripted(program)) as tour:
        pass

    assert "scripted 1" in shown(console)
    assert tour.failures == 0


def test_the_bridge_gets_its_name_and_the_environment_that_was_chosen() -> None:
    program = 'shake_hands(sys.argv[1] + " " + os.environ["CHOSEN"])'
    console = screen()

    with DemoScript(console, "named", {**os.environ, "CHOSEN": "here"}, command=scripted(program)):
        pass

    assert "named here 1" in shown(console)


def test_without_another_command_the_bridge_is_one_of_this_product(capfd: pytest.CaptureFixture[str]) -> None:
    with (
        pytest.raises(EOFError, match="its standard error says why"),
        DemoScript(screen(), "nonsense", os.environ),
    ):
        pass  # pragma: no cover - it is not reached

    assert "Unknown command 'nonsense'" in capfd.readouterr().err


def test_a_bridge_that_ends_in_the_middle_is_an_error() -> None:
    program = (
        "hello = hear(); os.close(0)\nsay({'id': 1, 'result': {'serverInfo': dict(name='x', version='1')}})"
    )
    tour = DemoScript(screen(), "x", os.environ, command=scripted(program))

    with pytest.raises(EOFError, match="ended during the demo"), tour:
        tour.call("Are you there?", "greet", {"name": "x" * 100_000})


def test_a_bridge_that_ends_with_another_status_is_a_failure() -> None:
    with DemoScript(screen(), "x", os.environ, command=scripted("shake_hands(); sys.exit(3)")) as tour:
        pass

    assert tour.failures == 1


def test_a_bridge_that_never_answers_is_ended() -> None:
    began = time.monotonic()

    with (
        pytest.raises(EOFError, match=r"did not answer within 0\.2 s"),
        DemoScript(screen(), "x", os.environ, command=scripted("time.sleep(600)"), seconds=0.2),
    ):
        pass  # pragma: no cover - it is not reached

    assert time.monotonic() - began < PATIENCE


def test_a_bridge_that_does_not_end_is_ended() -> None:
    program = "shake_hands(); time.sleep(600)"
    began = time.monotonic()

    with DemoScript(screen(), "x", os.environ, command=scripted(program), seconds=10) as tour:
        pass

    assert tour.failures == 1
    assert time.monotonic() - began < PATIENCE


def test_an_answer_that_grows_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    console = screen()
    program = """
shake_hands()
hear()
asked = hear()
for piece in ("one ", "two"):
    say({"method": "notifications/progress", "params": {"progressToken": "shown", "message": piece}})
say({"id": asked["id"], "result": {"content": [{"type": "text", "text": "one two"}]}})
sys.stdin.read()
"""
    with DemoScript(console, "any", os.environ, command=scripted(program)) as tour:
        tour.call_live("Look.", "count", {})
        tour.say("Next.")

    assert shown(console).count("one two") == 1
    assert re.search("one two *\n\nNext.\n", shown(console))


def test_of_many_lines_the_first_are_shown() -> None:
    console = screen()
    answer = "\n".join(f"line {number}." for number in range(50))
    program = f"""
shake_hands()
hear()
say({{"id": hear()["id"], "result": {{"content": [{{"type": "text", "text": {answer!r}}}]}}}})
sys.stdin.read()
"""
    with DemoScript(console, "any", os.environ, command=scripted(program)) as tour:
        tour.call("Count.", "count", {})

    assert f"line {MAX_LINES - 1}." in shown(console)
    assert f"line {MAX_LINES}." not in shown(console)


def test_a_change_is_shown_as_a_diff() -> None:
    console = screen()

    with DemoScript(console, "greeter", os.environ, command=GREETER) as tour:
        tour.show_change("one\ntwo\n", "one\nthree\n")

    assert [line.strip() for line in shown(console).splitlines()[-3:]] == ["one", "- two", "+ three"]
