"""Rendering: a board as a table, CSV, JSON and Markdown, with the same figures in all."""

import csv
import io
import json
import os
import subprocess

import pytest

from tests.aoc.data import Data, entry, typed
from tests.support.checked import connect
from tests.support.person import COMMAND

LONG = "meta-llama/Llama-4-Maverick-17B-128E"


def test_the_leaderboard_is_a_table(filled: Data) -> None:
    done = typed(filled, "leaderboard")

    assert (done.returncode, done.stderr) == (0, "")
    first, second = [line.split() for line in done.stdout.splitlines() if "fast" in line or "slow|" in line]
    assert first[:10] == ["1", "fast", "1.00×", "1", "s", "1", "s", "5", "1", "990"]
    assert second[:4] == ["2", "slow|model", "2.55×", "2.50–2.60×"]
    assert "All the time an agent took, failures included" in " ".join(done.stdout.split())


@pytest.mark.parametrize("columns", ["60", "80", None])
def test_names_are_whole_at_sixty_columns_and_in_a_pipe(data: Data, columns: str | None) -> None:
    data.put_speeds(1, [*(entry(LONG, time) for time in range(150_000, 186_000, 1000)), entry("o3", 9)])
    environment = {**os.environ, **data.environment()}
    environment.pop("COLUMNS", None)
    environment |= {"COLUMNS": columns} if columns else {}

    done = subprocess.run(
        [COMMAND, "aoc", "leaderboard"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=environment,
    )

    (row,) = [line for line in done.stdout.splitlines() if LONG in line]
    assert "2.79 min" in row
    assert ("stdev" in done.stdout) == (columns is None)
    assert all(len(line) <= int(columns or 1000) for line in done.stdout.splitlines())


def test_a_claimed_time_is_marked_also_on_a_narrow_terminal_beside_a_very_long_name(data: Data) -> None:
    data.put_speeds(1, [entry("o3", 9), entry("x" * 180, 10)])

    done = typed(data, "leaderboard", COLUMNS="80")

    rows = [line.split() for line in done.stdout.splitlines() if line.endswith("claimed")]
    assert [row[0][:2] for row in rows if "ms" in row] == ["o3", "xx"], done.stdout


def test_the_leaderboard_as_csv_can_be_read_back(filled: Data) -> None:
    rows = list(csv.DictReader(io.StringIO(typed(filled, "leaderboard", "--format", "csv").stdout)))

    assert [(row["rank"], row["llm"], row["median"], row["stdev"]) for row in rows] == [
        ("1", "fast", "1000", str(62.5**0.5)),
        ("2", "slow|model", "2550", str(1562.5**0.5)),
    ]


@pytest.mark.parametrize("command", ["leaderboard", "export"])
def test_a_model_whose_name_is_a_formula_is_text_in_csv(data: Data, command: str) -> None:
    data.put_speeds(1, [entry("=cmd|'/C calc'!A0", 1000)])
    (row,) = csv.DictReader(io.StringIO(typed(data, command, "--format", "csv").stdout))

    assert row["llm"] == "'=cmd|'/C calc'!A0"


async def test_every_view_of_a_board_has_the_same_figures(filled: Data) -> None:
    table = typed(filled, "leaderboard").stdout
    as_json = json.loads(typed(filled, "leaderboard", "--format", "json").stdout)
    as_markdown = typed(filled, "leaderboard", "--format", "markdown").stdout
    async with connect(filled.bridge()) as client:
        tool = await client.call("speed_leaderboard")
        params = {"name": "compare_models", "arguments": {}}
        prompt = (await client.request("prompts/get", params))["messages"][0]["content"]["text"]

    assert as_json["rows"] == tool["structuredContent"]["rows"]
    assert as_json["rows"][1]["slower"] == pytest.approx(2.55, rel=1e-3)
    for text in (table, as_markdown, tool["content"][0]["text"], prompt):
        assert "2.55×" in text
        assert "2.55 s" in text


def test_the_leaderboard_as_markdown_is_a_table(filled: Data) -> None:
    lines = typed(filled, "leaderboard", "--format", "markdown").stdout.splitlines()

    assert lines[0] == (
        "| rank | model | slower | 95 % | per solved | median | runs | puzzles | best | grade "
        "| mean | stdev |"
    )
    assert lines[3].startswith(r"| 2 | slow\|model | 2.55× | ")
    assert lines[3].endswith(" | 2.55 s | 2.55 s | 5 | 1 | 2.5 s | claimed | 2.55 s | 39.5 ms |")
