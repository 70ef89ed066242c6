"""Registry: which bridges there are to serve."""

import pytest

from bridgehead.host.registry import Registry, installed
from bridgehead.runtime import plugins
from bridgehead.runtime.settings import SettingError


def test_all_bridges_are_served_unless_some_are_named() -> None:
    assert tuple(installed()) == plugins.built_in_names()
    assert tuple(installed(["mercury", "aoc"])) == ("mercury", "aoc")


def test_a_bridge_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(SettingError, match="BRIDGEHEAD_BRIDGES is 'moon': expected one or more of aoc"):
        installed(["aoc", "moon"])


def test_a_bridge_that_cannot_be_loaded_leaves_the_others_alone() -> None:
    registry = Registry(installed(["aoc"]), {"AOC_YEAR": "long ago"})
    assert (
        "could not begin" in registry.statuses["aoc"].problem
        or "AOC_YEAR" in registry.statuses["aoc"].problem
    )
    assert registry.bridges == {}
