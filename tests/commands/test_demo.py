"""Demo: a tour that ends well, whatever is set where the person is."""

import pytest

from bridgehead.runtime import plugins
from tests.support.person import Person


@pytest.mark.parametrize("bridge", plugins.built_in_names())
def test_the_tour_of_a_bridge_ends_well_and_leaves_nothing(person: Person, bridge: str) -> None:
    before = sorted(person.home.rglob("*"))
    done = person.run("demo", bridge)

    assert (done.returncode, done.stderr) == (0, "")
    assert "Done in" in done.stdout
    assert sorted(person.home.rglob("*")) == before


def test_the_demo_is_short_and_ends_with_the_edit_of_an_agent(person: Person) -> None:
    done = person.run("demo", COLUMNS="80")
    lines = done.stdout.splitlines()
    end = lines[-24:]

    assert (done.returncode, done.stderr) == (0, "")
    assert len(lines) <= 120
    assert any("+     await ns.grow(target);" in line for line in end)
    assert any("edit_file(" in line for line in end)
    assert "tokens a second" not in done.stdout


def test_a_tour_takes_no_setting_of_the_person(person: Person) -> None:
    (person.home / ".env").write_text("BRIDGEHEAD_READ_ONLY=1\nAOC_YEAR=2016\n", encoding="utf-8")

    done = person.run("demo", "aoc")

    assert (done.returncode, done.stderr) == (0, "")


def test_a_bridge_that_is_not_there_is_one_line(person: Person) -> None:
    done = person.run("demo", "moon")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("bridgehead demo: Unknown bridge 'moon'. Available: ")
    assert done.stderr.count("\n") == 1
