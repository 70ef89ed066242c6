"""Demo: invented puzzles and scripted agents."""

from pathlib import Path

from bridgehead.aoc.bench.demo import AGENTS, demo_agents, make_puzzles
from bridgehead.aoc.doctor import check
from bridgehead.aoc.files.layout import folders_in


def test_the_puzzles_are_a_valid_data_folder(tmp_path: Path) -> None:
    make_puzzles(tmp_path, [1, 2, 3])

    report = check(folders_in(str(tmp_path), 2025))

    assert report.problems == []
    assert (tmp_path / "answers" / "Day01_phase1.txt").read_text() == "447\n"


def test_the_puzzles_are_the_same_each_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_puzzles(tmp_path / name, [2, 3])

    for path in (tmp_path / "a").rglob("*.txt"):
        assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()


def test_every_agent_is_started_like_any_other() -> None:
    agents = demo_agents()

    assert [agent.name for agent in agents] == list(AGENTS)
    assert all("{mcp_config}" in agent.command and agent.command[-1] == "{prompt}" for agent in agents)
