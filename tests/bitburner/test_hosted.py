"""Hosted: what the bitburner bridge tells a host of its game."""

from pathlib import Path

from bridgehead.bitburner.hosted import far_side, hosted
from bridgehead.runtime.metrics import Metrics
from tests.bitburner.playing import bridged, played


def test_a_host_gets_the_bridge_and_is_told_to_run_it_alone(tmp_path: Path) -> None:
    made = hosted({"BRIDGEHEAD_STATE_DIR": str(tmp_path)}, Metrics())

    assert made.bridge.info.name == "bitburner"
    assert made.alone.startswith("A game connects to one process only")


async def test_a_game_is_there_when_it_has_dialled_in(tmp_path: Path) -> None:
    assert far_side(None).says == "The port is not open yet."

    async with bridged(tmp_path) as play:
        missing = far_side(play.session)
        assert not missing.is_there
        assert "Options → Remote API" in missing.says

    async with played(tmp_path) as play:
        found = far_side(play.session)
        assert (found.is_there, found.says) == (
            True,
            "A game is connected, from https://bitburner-official.github.io.",
        )
