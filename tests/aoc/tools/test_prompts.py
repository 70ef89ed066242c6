"""Prompts and their completions."""

from typing import Any

import pytest

from tests.aoc.data import Data, entry
from tests.support.checked import CheckedClient, connect


async def prompted(data: Data, name: str, **arguments: str) -> str:
    async with connect(data.bridge()) as client:
        result = await client.request("prompts/get", {"name": name, "arguments": arguments})
    (message,) = result["messages"]
    assert message["role"] == "user"
    text: str = message["content"]["text"]
    return text


async def refusal(data: Data, name: str, arguments: dict[str, str], **settings: str) -> Any:
    async with connect(data.bridge(**settings)) as client:
        return await client.error("prompts/get", {"name": name, "arguments": arguments})


async def test_solve_day_says_how_the_server_takes_the_time_and_gives_nothing_away(data: Data) -> None:
    data.puzzle(3, "Find the key.", "Find the door.")

    text = await prompted(data, "solve_day", day="3", language="Zig")

    assert text.startswith("Solve phase 1 of day 3 of Advent of Code 2025 in Zig")
    assert "start_attempt(day=3, phase=1, " in text
    assert "record_speed(day=3, phase=1," in text
    assert "aoc://day03/input" in text
    assert "never estimate" in text
    assert "Find the" not in text


async def test_solve_day_is_for_either_phase(data: Data) -> None:
    data.puzzle(3, "Find the key.", "Find the door.")

    assert "start_attempt(day=3, phase=2, " in await prompted(data, "solve_day", day="3", phase="2")


@pytest.mark.parametrize(
    ("year", "day", "word"),
    [
        ("2025", "12", "no second puzzle"),
        ("2024", "12", "no second phase yet"),
        ("2024", "25", "no second puzzle"),
        ("2025", "1", "no second phase yet"),
    ],
)
async def test_a_second_phase_that_is_not_there_is_explained(
    data: Data, year: str, day: str, word: str
) -> None:
    data.puzzle(int(day), "one")
    Data(data.folder / "2024").puzzle(int(day), "one")

    error = await refusal(data, "solve_day", {"day": day, "phase": "2"}, AOC_YEAR=year)

    assert error["code"] == -1
    assert word in error["message"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("solve_day", {}),
        ("solve_day", {"day": "26"}),
        ("solve_day", {"day": "one"}),
        ("solve_day", {"day": "1", "phase": "3"}),
        ("compare_models", {"llm": "x"}),
        ("no_such_prompt", {}),
    ],
)
async def test_what_does_not_fit_is_invalid_params(data: Data, name: str, arguments: dict[str, str]) -> None:
    error = await refusal(data, name, arguments)

    assert error["code"] == -32602
    assert error["message"].startswith("Invalid params")


async def test_compare_models_gives_the_ranking_and_how_to_read_it(data: Data) -> None:
    times = {"slow": (39, 39, 40, 41, 41), "fast": (19, 19, 20, 21, 21)}
    data.put_speeds(1, [entry(llm, time) for llm, of_model in times.items() for time in of_model])

    text = await prompted(data, "compare_models", day="1", phase="1", llm_name="slow")

    assert "recorded times on day 1 in phase 1." in text
    assert text.index("1. fast: 1.00× the leader, 20 ms per solved answer") < text.index(
        "2. slow: 2.00× the leader ("
    )
    assert "Models whose ranges overlap" in text
    assert "other" not in text
    assert "Look closely at slow." in text


async def test_compare_models_shows_only_the_fastest_of_many(data: Data) -> None:
    data.put_speeds(1, [entry(f"llm{number}", number) for number in range(40)])

    assert "10 more are not shown." in await prompted(data, "compare_models")


async def completed(client: CheckedClient, prompt: str, argument: str, value: str) -> list[str]:
    params = {"ref": {"type": "ref/prompt", "name": prompt}, "argument": {"name": argument, "value": value}}
    values: list[str] = (await client.request("completion/complete", params))["completion"]["values"]
    return values


async def test_arguments_are_completed(data: Data) -> None:
    for day in (1, 2, 12):
        data.puzzle(day, "text")
    data.put_speeds(1, [entry("gpt4", 1), entry("Gemini", 1), entry("llama", 1)])

    async with connect(data.bridge()) as client:
        assert await completed(client, "solve_day", "day", "1") == ["1", "12"]
        assert await completed(client, "compare_models", "day", "") == ["1", "2", "12"]
        assert await completed(client, "solve_day", "phase", "") == ["1", "2"]
        assert await completed(client, "solve_day", "language", "ru") == ["Ruby", "Rust"]
        assert await completed(client, "compare_models", "llm_name", "g") == ["Gemini", "gpt4"]


async def test_a_broken_second_phase_stops_only_the_prompt_for_it(data: Data) -> None:
    data.puzzle(3, "one", b"\xff")

    assert "phase 1 of day 3" in await prompted(data, "solve_day", day="3")
    error = await refusal(data, "solve_day", {"day": "3", "phase": "2"})
    assert (error["code"], "Day03_phase2.md" in error["message"]) == (-1, True)
