"""Check: what is wrong with a bridge is listed with its line, and ours have nothing wrong."""

import json
from pathlib import Path

import pytest

from bridgehead.commands import check
from bridgehead.mcp import REVISIONS
from bridgehead.runtime import plugins
from tests.support.person import Person

SERVER = '''\
from bridgehead.mcp import Bridge, NoArguments

bridge = Bridge("shop", "1", output_schemas="{schemas}")


@bridge.tool(read_only=True)
def price(item: str, count: int = 2) -> int:
    """Price of an item."""
    return {value}


@bridge.tool
def buy(item: str) -> str:
    """Buy an item."""
    return {bought}


@bridge.resource("shop://rules")
def rules() -> str:
    """Rules of the shop."""
    return {rules}
'''


def write(folder: Path, value: str = "count", bought: str = '"ok"', rules: str = '"Be kind."') -> str:
    path = folder / "server.py"
    path.write_text(SERVER.format(schemas="full", value=value, bought=bought, rules=rules), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", plugins.built_in_names())
def test_our_own_bridges_have_no_problems(person: Person, name: str) -> None:
    done = person.run("check", name, "--json")

    report = json.loads(done.stdout)
    assert (done.returncode, report["problems"]) == (0, [])
    assert report["called"]


def test_a_sound_bridge_has_none_and_what_was_not_called_is_named(person: Person, tmp_path: Path) -> None:
    done = person.run("check", write(tmp_path))

    assert done.returncode == 0, done.stdout
    assert "not called: buy, which may change something (--all)" in done.stdout
    assert "Claude Code" in done.stdout
    assert "No problems found." in done.stdout


@pytest.mark.parametrize(
    ("mistake", "part", "line"),
    [
        ({"value": '"five"'}, "price", 6),
        ({"bought": "1 / 0"}, "buy", 12),
        ({"rules": "None"}, "shop://rules", 18),
    ],
)
def test_a_problem_is_listed_with_its_line(
    person: Person, tmp_path: Path, mistake: dict[str, str], part: str, line: int
) -> None:
    server = write(tmp_path, **mistake)
    done = person.run("check", server, "--all", "--json")

    assert done.returncode == 1
    problem = json.loads(done.stdout)["problems"][0]
    assert problem["part"] == part
    assert problem["place"] == f"{server}:{line}"


def test_a_mistake_in_a_declaration_is_a_problem(person: Person, tmp_path: Path) -> None:
    path = tmp_path / "server.py"
    path.write_text(SERVER.replace("item: str, count", "item, count"), encoding="utf-8")

    assert person.run("check", str(path)).returncode != 0


def test_there_is_a_schema_for_every_revision() -> None:
    assert check._schemas().keys() == REVISIONS.keys()  # noqa: SLF001
