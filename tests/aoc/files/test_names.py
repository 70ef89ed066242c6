"""Names: when two names are one, by their spelling, their case or `aliases.json`."""

import json
from pathlib import Path
from typing import Any

import pytest

from bridgehead.aoc.files.names import Aliases, merge_spellings, read_aliases
from tests.aoc.data import Data, entry
from tests.support.checked import connect


async def board(data: Data, **arguments: Any) -> Any:
    async with connect(data.bridge()) as client:
        return (await client.call("speed_leaderboard", arguments))["structuredContent"]


async def history(data: Data, **arguments: Any) -> Any:
    async with connect(data.bridge()) as client:
        return (await client.call("speed_history", arguments))["structuredContent"]


def put_aliases(data: Data, aliases: Any) -> None:
    text = aliases if isinstance(aliases, bytes) else json.dumps(aliases).encode()
    (data.folder / "aliases.json").write_bytes(text)


def ranks(answer: Any) -> list[tuple[int, str]]:
    return [(row["rank"], row["llm"]) for row in answer["rows"]]


@pytest.mark.parametrize("tool", ["speed_leaderboard", "speed_history"])
@pytest.mark.parametrize("argument", ["llm", "llm_name"])
async def test_a_model_is_found_in_any_case_under_either_argument(
    data: Data, tool: str, argument: str
) -> None:
    data.put_speeds(1, [entry("gpt-5", 5), entry("o3", 5)])

    async with connect(data.bridge()) as client:
        answer = (await client.call(tool, {argument: "GPT-5"}))["structuredContent"]

    assert [one["llm"] for one in answer.get("rows") or answer["runs"]] == ["gpt-5"]


async def test_names_that_look_alike_are_one_name(data: Data) -> None:
    data.put_speeds(
        1,
        [
            entry("caf\u00e9", 1),
            entry("cafe\u0301", 2),
            entry("\u200bcaf\u00e9\u202e", 3),
            entry("o\u00a03", 4),
        ],
    )

    answer = await board(data)

    assert [(row["llm"], row["n"]) for row in answer["rows"]] == [("caf\u00e9", 3), ("o 3", 1)]


@pytest.mark.parametrize(
    "spelling",
    ["gpt\u20104", "gpt\u22124", "\uff47\uff50\uff54-4", "\U0001d420\U0001d429\U0001d42d-4", "GPT-\uff14"],
)
async def test_spellings_that_nobody_can_tell_apart_are_one_model(data: Data, spelling: str) -> None:
    data.put_speeds(1, [entry("gpt-4", 1), entry("gpt-4", 2), entry(spelling, 3)])

    answer, found = await board(data), await board(data, llm=spelling)

    assert [(row["llm"], row["n"]) for row in answer["rows"]] == [("gpt-4", 3)]
    assert found["rows"] == answer["rows"]


async def test_names_of_two_alphabets_that_look_alike_are_two_models_and_noted(
    data: Data,
) -> None:
    data.put_speeds(1, [entry("gpt-4o", 1), entry("gpt-4\u043e", 2), entry("\u0434\u0430", 3)])

    answer = await board(data)

    assert sorted(row["llm"] for row in answer["rows"]) == ["gpt-4o", "gpt-4\u043e", "\u0434\u0430"]
    assert "Different names that look alike: 'gpt-4o', 'gpt-4\\u043e'." in answer["notes"]


async def test_aliases_make_one_llm_of_several_names(data: Data) -> None:
    put_aliases(data, {"gpt4": ["gpt-4", "gpt4agent"]})
    data.put_speeds(1, [entry("gpt4", 1), entry("gpt-4", 3), entry("gpt4agent", 5), entry("other", 2)])

    answer, by_alias = await board(data), await board(data, llm="gpt-4")
    runs = await history(data, llm="gpt4agent")

    assert sorted(row["llm"] for row in answer["rows"]) == ["gpt4", "other"]
    assert by_alias["rows"][0]["n"] == 3
    assert sorted(run["llm"] for run in runs["runs"]) == ["gpt-4", "gpt4", "gpt4agent"]


@pytest.mark.parametrize("tool", ["speed_leaderboard", "speed_history"])
@pytest.mark.parametrize(
    ("aliases", "word"),
    [
        (b"{", "truncated"),
        (b"[]", "object"),
        (b'{"a": "b"}', "array"),
        (b'{"a": [""]}', "length"),
        ({"a": ["x"], "b": ["x"]}, "both"),
        ({"a": ["b"], "b": ["c"]}, "aliases of its own"),
    ],
)
async def test_a_broken_aliases_file_is_named_and_left_out(
    data: Data, aliases: Any, word: str, tool: str
) -> None:
    put_aliases(data, aliases)
    data.put_speeds(1, [entry("a", 1)])

    async with connect(data.bridge()) as client:
        result = await client.call(tool)

    (skipped,) = result["structuredContent"]["skipped"]
    assert skipped["file"] == str(data.folder / "aliases.json")
    assert word in skipped["problem"]
    assert f"Skipped: {data.folder / 'aliases.json'} is broken" in result["content"][1]["text"]
    assert result["structuredContent"]["notes"][-1] in result["content"][1]["text"]
    assert result["structuredContent"]["total"] == 1


# --- one model, whatever the case --------------------------------------------------------------------------


def test_an_alias_is_known_in_any_case(tmp_path: Path) -> None:
    (tmp_path / "aliases.json").write_text('{"GPT-4": ["gpt4", "gpt4agent"]}')
    aliases = read_aliases(str(tmp_path / "aliases.json"))

    assert [aliases.of(name) for name in ("gpt4", "Gpt4", "GPT4AGENT", "gpt-4", "o1")] == [
        *["GPT-4"] * 4,
        "o1",
    ]


def test_names_that_differ_in_case_are_one_model_called_as_most_of_its_runs_are() -> None:
    name_of = merge_spellings(Aliases(), {"GPT4": 1, "gpt4": 3, "Gpt4": 3, "O1": 2, "o1": 2})

    assert {name_of(name) for name in ("GPT4", "gpt4", "Gpt4", "gPT4")} == {"Gpt4"}
    assert [name_of("o1"), name_of("Claude"), name_of("claude")] == ["O1", "Claude", "Claude"]
