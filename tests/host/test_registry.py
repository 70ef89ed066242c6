"""Registry: which bridges there are to serve, and how their far sides are."""

import asyncio
from pathlib import Path

import pytest

from bridgehead.host import registry as registry_module
from bridgehead.host.registry import Registry, installed
from bridgehead.runtime import events, plugins
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.events import Listener
from bridgehead.runtime.settings import SettingError
from tests.host.telemetry.test_metrics import scraped
from tests.support.host_bridges import StandIns
from tests.support.host_server import hosting
from tests.support.waiting import until

OFTEN = {"BRIDGEHEAD_PROBE_SECONDS": "0.01"}


def test_all_bridges_are_served_unless_some_are_named() -> None:
    assert tuple(installed()) == plugins.built_in_names()
    assert tuple(installed(["mercury", "aoc"])) == ("mercury", "aoc")


def test_a_bridge_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(SettingError, match="BRIDGEHEAD_BRIDGES is 'moon': expected one or more of aoc"):
        installed(["aoc", "moon"])


def test_a_bridge_that_cannot_be_loaded_leaves_the_others_alone() -> None:
    registry = Registry(installed(["aoc"]), {"AOC_YEAR": "long ago"})
    assert (
        "could not start" in registry.statuses["aoc"].problem
        or "AOC_YEAR" in registry.statuses["aoc"].problem
    )
    assert registry.bridges == {}


async def test_a_far_side_that_goes_and_comes_is_noticed_without_a_request(tmp_path: Path) -> None:
    listener = Listener()
    events.feed.join(listener)
    try:
        async with hosting(tmp_path, OFTEN) as host:
            far = host.far["alpha"]
            far.is_there = False
            await until(lambda: host.logged("a bridge is not connected"))
            far.is_there = True
            await until(lambda: host.logged("a bridge is connected"))
    finally:
        events.feed.leave(listener)

    told = [(event.type, event.data["bridge"]) for event in await listener.take(99)]
    assert told == [("far_side.lost", "alpha"), ("far_side.returned", "alpha")]


async def test_a_look_that_hangs_is_a_far_side_that_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry_module, "PROBE_LIMIT_SECONDS", 0.01)
    stand_ins = StandIns("alpha", "beta")
    stand_ins.far["alpha"].probe = lambda: asyncio.sleep(600)
    async with hosting(tmp_path, OFTEN, stand_ins=stand_ins) as host:
        await until(lambda: host.logged("a bridge is not connected"))
        ready = await host.page("/readyz")
        found = await scraped(host)

    assert ready["bridges"]["alpha"] == {
        "serves": True,
        "far_side": False,
        "says": "No answer to the check within 0.01 s.",
    }
    assert found['bridgehead_far_side_up{bridge="alpha"}'] == 0
    assert found['bridgehead_far_side_up{bridge="beta"}'] == 1


async def test_a_look_that_fails_is_told_and_the_next_one_comes(tmp_path: Path) -> None:
    async def fail() -> None:
        raise RuntimeError("no")

    stand_ins = StandIns("alpha")
    stand_ins.far["alpha"].probe = fail
    async with hosting(tmp_path, OFTEN, stand_ins=stand_ins) as host:
        await until(lambda: host.far["alpha"].probed > 1)
        stand_ins.far["alpha"].probe = None
        await until(lambda: host.logged("a bridge is connected"))


async def test_nothing_is_looked_at_where_that_is_switched_off(tmp_path: Path) -> None:
    async with hosting(tmp_path, {"BRIDGEHEAD_PROBE_SECONDS": "0"}) as host:
        await host.try_call("/mcp", "alpha_echo")

    assert host.far["alpha"].probed == 0


def test_a_bridge_in_a_file_is_served_under_its_own_name_beside_others(tmp_path: Path) -> None:
    path = tmp_path / "served_from_a_file.py"
    path.write_text('from bridgehead.mcp import Bridge\nmine = Bridge("My Weather", "1")\n', encoding="utf-8")

    assert tuple(installed(["aoc", str(path)])) == ("aoc", "my-weather")


def test_two_bridges_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "another_aoc.py"
    path.write_text('from bridgehead.mcp import Bridge\nmine = Bridge("aoc", "1")\n', encoding="utf-8")

    with pytest.raises(BridgeError, match="Two of the bridges to serve are called 'aoc'"):
        installed(["aoc", str(path)])
