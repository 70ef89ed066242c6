"""Call: a tool is called from the command line; its answer can be piped on, and a person sees it unfold."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridgehead.mercury.simulator import Simulator
from tests.bitburner.playing import FILES
from tests.bitburner.serving import HOST
from tests.support.game import Game
from tests.support.person import Interrupt, Person
from tests.support.ports import free_port

HELLO = 'messages=[{"role": "user", "content": "Tell me of a bridge in 40 words"}]'
QUICK = {"BITBURNER_CONNECT_WAIT_MS": "50"}


@asynccontextmanager
async def playing() -> AsyncIterator[tuple[Game, dict[str, str]]]:
    """A game that dials until somebody is there, and the settings with which a command is that somebody."""
    port = free_port()

    async def dial(game: Game) -> None:
        while not await game.dial(f"ws://{HOST}:{port}"):
            await asyncio.sleep(0.05)

    async with Game(3, FILES) as game:
        dialling = asyncio.ensure_future(dial(game))
        yield game, {"BITBURNER_LISTEN": f"{HOST}:{port}", "BITBURNER_CONNECT_WAIT_MS": "20000"}
        dialling.cancel()  # a call that was taken back may not have needed it


def test_arguments_are_typed_as_the_tool_wants_them_and_the_answer_is_all_there_is(person: Person) -> None:
    done = person.run("call", "aoc", "record_speed", "day=1", "phase=2", "llm_name=7", "speed_ms=1200")

    assert (done.returncode, done.stderr) == (0, "")
    assert "1200" in done.stdout
    (record,) = json.loads((person.puzzles / "speeds" / "day01.json").read_text())["entries"]
    assert (record["llm"], record["phase"], record["speedMs"]) == ("7", 2, 1200)


def test_the_whole_result_comes_as_json(person: Person) -> None:
    done = person.run("call", "aoc", "speed_leaderboard", "limit=3", "--json")

    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert result["content"][0]["type"] == "text"
    assert "structuredContent" in result


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_tool_that_fails_ends_with_1(person: Person, options: list[str]) -> None:
    done = person.run("call", "bitburner", "list_files", *options, **QUICK)

    assert done.returncode == 1
    if options:
        assert (json.loads(done.stdout)["isError"], done.stderr) == (True, "")
    else:
        assert done.stdout == ""
        assert done.stderr.startswith("Bitburner disconnected")


def test_an_error_of_the_protocol_ends_with_1(person: Person) -> None:
    done = person.run("call", "aoc", "fetch_instruction", "day=99")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Invalid params for fetch_instruction")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["aoc", "fetch_instruction", "day=x"], "day='x' is not valid. Expected day=integer"),
        (["aoc", "fetch_instruction"], "missing day. Expected day=integer"),
        (["aoc", "fetch_instruction", "dai=1"], "unknown argument 'dai'. Expected day=integer"),
        (["aoc", "fetch_instruction", "1"], "'1' is not key=value. Expected day=integer"),
        (
            ["aoc", "connection_status"],
            "aoc has no tool 'connection_status'. Valid values are fetch_instruction, ",
        ),
        (["aoc"], "the following arguments are required: TOOL. Usage: bridgehead call "),
        (["moon", "land"], "Unknown bridge 'moon'. Available: aoc, "),
        (["mercury", "mercury_list_models", "a=1"], "unknown argument 'a'. Expected no arguments"),
    ],
)
def test_wrong_usage_is_one_line_that_says_what_is_expected(
    person: Person, words: list[str], line: str
) -> None:
    done = person.run("call", *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"bridgehead call: {line}")
    assert done.stderr.count("\n") == 1


def test_a_tool_that_is_not_offered_cannot_be_called_either(person: Person) -> None:
    words = ("call", "aoc", "record_speed", "day=1", "phase=2", "llm_name=fox", "speed_ms=1200")
    done = person.run(*words, BRIDGEHEAD_READ_ONLY="1")

    assert done.returncode == 2
    assert "aoc has no tool 'record_speed'. Valid values are fetch_instruction" in done.stderr
    assert not (person.puzzles / "speeds").exists()


def test_the_log_is_quiet_unless_it_is_asked_for(person: Person) -> None:
    assert person.run("call", "bitburner", "connection_status").stderr == ""
    assert person.run("call", "mercury", "mercury_usage").stderr == ""

    spoken = person.run("call", "bitburner", "connection_status", LOG_LEVEL="info").stderr
    assert "starting" in spoken


async def test_a_file_of_text_goes_into_the_game(person: Person) -> None:
    (person.home / "new.js").write_bytes(b"export const a = 2;\n")
    words = ("call", "bitburner", "write_file", "filename=new.js", "content=@new.js")
    async with playing() as (game, settings):
        done = await person.runs(*words, **settings)

        assert (done.returncode, done.stdout, done.stderr) == (0, "OK\nNote: It costs 1.6 GB of RAM.\n", "")
        assert game.servers["home"]["new.js"] == "export const a = 2;\n"


@pytest.mark.parametrize(
    ("says", "status", "told"),
    [("y\n", 0, ""), ("what\nno\n", 1, "did not agree"), ("\x04", 1, "Nobody answered")],
)
async def test_a_person_is_asked_before_something_is_deleted(
    person: Person, says: str, status: int, told: str
) -> None:
    async with playing() as (game, settings):
        code, out, shown = await person.sits(
            *("call", "bitburner", "delete_file", "filename=notes.txt"),
            says=[("yes or no: ", says)],
            **settings,
        )

        assert (code, out) == (status, "" if status else "OK\n")
        assert "Delete notes.txt on home?" in shown
        assert told in shown
        assert ("notes.txt" in game.servers["home"]) == bool(status)


async def test_a_person_may_leave_while_being_asked(person: Person) -> None:
    async with playing() as (game, settings):
        code, out, shown = await person.sits(
            *("call", "bitburner", "delete_file", "filename=notes.txt"),
            says=[("yes or no: ", Interrupt)],
            **settings,
        )

        assert (code, out) == (130, "")
        assert "Traceback" not in shown
        assert "notes.txt" in game.servers["home"]


async def test_nobody_is_asked_where_nobody_sits(person: Person) -> None:
    async with playing() as (game, settings):
        done = await person.runs("call", "bitburner", "delete_file", "filename=notes.txt", **settings)

        assert (done.returncode, done.stdout) == (0, "OK\n")
        assert "notes.txt" not in game.servers["home"]


async def test_a_stream_unfolds_on_the_terminal_and_its_answer_is_piped_on(
    person: Person, api: Simulator, mercury: dict[str, str]
) -> None:
    api.chunk_delay = 0.05
    code, out, shown = await person.sits("call", "mercury", "mercury_chat_stream", HELLO, **mercury)

    assert code == 0
    first = out.split()[0]
    assert len(out.split()) >= 40
    assert shown.count(first) > 1, "it was shown as it grew"
    assert "\x1b" not in out


async def test_without_a_terminal_nothing_unfolds(person: Person, mercury: dict[str, str]) -> None:
    done = await person.runs("call", "mercury", "mercury_chat_stream", HELLO, **mercury)

    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.split()) >= 40


async def test_diffusion_replaces_what_was_shown(
    person: Person, api: Simulator, mercury: dict[str, str]
) -> None:
    api.chunk_delay = 0.05
    words = ("call", "mercury", "mercury_chat_stream", HELLO, "diffusing=true", "--json")
    code, out, shown = await person.sits(*words, **mercury)

    assert code == 0
    text = json.loads(out)["content"][0]["text"]
    assert len(text.split()) >= 40
    assert shown


async def test_a_bar_shows_how_far_it_is(person: Person, api: Simulator, mercury: dict[str, str]) -> None:
    prompts = json.dumps([f"A river in {number} words" for number in range(5, 11)])
    code, out, shown = await person.sits(
        *("call", "mercury", "mercury_batch", f"prompts={prompts}", "concurrency=1"), **mercury
    )

    assert code == 0
    assert " of 6" in shown
    assert " of 6" not in out


async def test_what_is_typed_reaches_the_api(person: Person, api: Simulator, mercury: dict[str, str]) -> None:
    words = ("temperature=0.5", "max_tokens=60", 'stop=["END"]', "cache=bypass", "reasoning_effort=low")
    done = await person.runs("call", "mercury", "mercury_chat_completion", HELLO, *words, **mercury)

    assert (done.returncode, done.stderr) == (0, "")
    sent = json.loads(api.requests.to("/chat/completions")[0].content)
    assert (sent["temperature"], sent["max_tokens"], sent["stop"]) == (0.5, 60, ["END"])
    assert sent["reasoning_effort"] == "low"


def test_a_value_may_come_from_standard_input(person: Person) -> None:
    words = ("call", "aoc", "record_speed", "day=1", "phase=1", "speed_ms=5")
    done = person.run(*words, "llm_name=@-", typed="piped")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Recorded piped Day 1")


def test_a_broken_setting_is_one_line(person: Person, tmp_path: Path) -> None:
    done = person.run("call", "aoc", "speed_leaderboard", AOC_DATA_DIR=str(tmp_path / "gone"))

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("bridgehead call: AOC_DATA_DIR is ")
    assert done.stderr.count("\n") == 1
