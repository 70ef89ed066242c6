"""Report: what the host's page shows of puzzles and records."""

import json
from pathlib import Path

from bridgehead.aoc.ranking.report import report
from bridgehead.aoc.settings import AocSettings
from bridgehead.aoc.workspace import open_workspace


def write_runs(folder: Path, **times: list[int]) -> None:
    entries = [
        {"llm": llm, "phase": 1, "speedMs": time, "timestamp": f"2025-12-01T08:{number:02}:00.000Z"}
        for llm, of_model in times.items()
        for number, time in enumerate(of_model)
    ]
    (folder / "speeds").mkdir()
    (folder / "speeds" / "day01.json").write_text(json.dumps({"day": 1, "entries": entries}))


async def test_models_are_ranked_and_runs_counted(tmp_path: Path) -> None:
    write_runs(tmp_path, fox=[1000] * 5, otter=[2000] * 6)
    told = await report(open_workspace(AocSettings({"AOC_DATA_DIR": str(tmp_path)})))

    facts = {fact.label: fact.value for fact in told.facts}
    assert (facts["Puzzles"], facts["Runs"], facts["Leader"]) == ("0 of 2025", "11 on 1 day", "fox")
    assert [(bar.label, bar.shown) for bar in told.charts[0].bars] == [("fox", "1.00×"), ("otter", "2.00×")]
    (table,) = told.tables
    assert [row[:3] for row in table.rows] == [("1", "fox", "1.00×"), ("2", "otter", "2.00×")]
    assert table.rows[1][4:6] == ("2 s", "6")


async def test_an_empty_folder_has_nobody_on_the_board(tmp_path: Path) -> None:
    told = await report(open_workspace(AocSettings({"AOC_DATA_DIR": str(tmp_path)})))

    assert ("Leader", "nobody yet") in [(fact.label, fact.value) for fact in told.facts]
    assert (told.charts, told.tables[0].rows) == ((), ())
