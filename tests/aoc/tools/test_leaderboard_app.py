"""The leaderboard app: what its page asks for, and what a client without apps sees of it."""

from typing import Any

from bridgehead.mcp import UI_EXTENSION
from tests.aoc.data import Data, entry
from tests.support.checked import connect

APPS: dict[str, Any] = {"extensions": {UI_EXTENSION: {}}}
MOST_BYTES = 50_000


async def call(data: Data, tool: str, **arguments: Any) -> Any:
    async with connect(data.bridge(), capabilities=APPS) as client:
        return (await client.call(tool, arguments))["structuredContent"]


async def test_the_page_gets_every_models_times_by_puzzle(data: Data) -> None:
    data.put_speeds(1, [entry("fox", 30), entry("fox", 10), entry("fox", 20), entry("owl", 80, phase=2)])
    data.put_speeds(3, [entry("fox", 40)])

    board = await call(data, "leaderboard_cells")

    assert (board["year"], board["measure"], board["puzzles"]) == (2025, "solving", [[1, 1], [1, 2], [3, 1]])
    assert {model["llm"]: model["cells"] for model in board["models"]} == {
        "fox": [[0, 10, 20, 3], [2, 40, 40, 1]],
        "owl": [[1, 80, 80, 1]],
    }


async def test_the_runs_of_a_cell_are_those_of_this_model_and_puzzle(data: Data) -> None:
    data.put_speeds(1, [entry("fox", 30), entry("fox", 10, phase=2), entry("owl", 20)])

    found = await call(data, "leaderboard_runs", day=1, phase=1, llm="fox", measure="solving")

    assert found["total"] == 1
    assert [run["speed_ms"] for run in found["runs"]] == [30]


async def test_a_full_board_stays_small_and_says_what_is_left_out(data: Data) -> None:
    for day in range(1, 26):
        data.put_speeds(
            day,
            [entry(f"model-number-{n}", 1000 + 17 * n, phase) for phase in (1, 2) for n in range(65)],
        )
    async with connect(data.bridge(), capabilities=APPS) as client:
        raw = await client.call("leaderboard_cells", {})

    assert raw["structuredContent"]["left_out"] == 5
    assert len(str(raw["structuredContent"]["models"][0]["cells"])) * 60 < MOST_BYTES * 2


async def test_an_empty_folder_is_an_empty_board(data: Data) -> None:
    board = await call(data, "leaderboard_cells")

    assert (board["models"], board["puzzles"]) == ([], [])


async def test_without_apps_nothing_of_the_page_is_listed(data: Data) -> None:
    async with connect(data.bridge()) as client:
        tools = [tool["name"] for tool in (await client.request("tools/list"))["tools"]]
        resources = (await client.request("resources/list"))["resources"]

    assert not [name for name in tools if name.startswith("leaderboard")]
    assert not [one for one in resources if one["uri"].startswith("ui:")]


async def test_without_the_ranking_the_page_has_no_tools_either(data: Data) -> None:
    async with connect(data.bridge(AOC_TOOLSETS="core"), capabilities=APPS) as client:
        tools = {tool["name"] for tool in (await client.request("tools/list"))["tools"]}

    assert tools == {"fetch_instruction", "record_speed"}
