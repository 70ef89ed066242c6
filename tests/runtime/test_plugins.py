"""Plugins: which bridges there are, and how each is loaded."""

from pathlib import Path

import pytest

from bridgehead.install.needs import needs
from bridgehead.runtime import plugins

ROOT = Path(__file__).parents[2]


def test_a_built_in_bridge_is_loaded_by_its_name_and_carries_it() -> None:
    assert [plugins.load(name).name for name in plugins.built_in_names()] == list(plugins.built_in_names())


def test_a_package_that_is_no_bridge_is_not_one() -> None:
    assert not any(map(plugins.is_built_in, ("mcp", "host", "runtime", "", "..", "aoc/files")))


def test_an_unknown_bridge_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(plugins.UnknownBridge, match=r"Unknown bridge 'moon'\. Available: aoc, "):
        plugins.load("moon")


@pytest.mark.parametrize("name", plugins.built_in_names())
def test_every_bridge_can_be_installed_with_nothing_set(name: str) -> None:
    assert needs(plugins.load(name).settings, {}).variables == {}
