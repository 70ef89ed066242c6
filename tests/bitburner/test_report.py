"""Report: what the host's page shows of the game."""

from pathlib import Path

from bridgehead.bitburner.report import report
from bridgehead.bitburner.simulator import Faults
from bridgehead.runtime.findings import Report
from tests.bitburner.playing import FILES, Play, bridged, played
from tests.support.game import Game


def facts(told: Report) -> dict[str, str]:
    return {fact.label: fact.value for fact in told.facts}


async def test_a_connected_game_shows_its_files_and_servers(play: Play, generation: int) -> None:
    told = await report(play.session)

    names = await play.session.remote.list_names("home")
    assert (facts(told)["Game"], facts(told)["Files on home"]) == ("connected", str(len(names)))
    assert facts(told)["Game version"] == {2: "2.6 or later", 3: "3.x"}[generation]
    assert {row[0] for row in told.tables[0].rows} == set(names)


async def test_an_older_game_is_shown_without_what_it_cannot_tell(tmp_path: Path) -> None:
    game = Game(2, FILES, lacking={"getAllServers", "getAllFileMetadata"})
    async with played(tmp_path, game=game) as play:
        told = await report(play.session)

    assert "Servers" not in facts(told)
    assert told.tables[0].columns == ("File",)
    assert {len(row) for row in told.tables[0].rows} == {1}


async def test_without_a_game_it_says_where_one_would_dial(tmp_path: Path) -> None:
    async with bridged(tmp_path) as play:
        told = await report(play.session)

    assert facts(told)["Game"] == "not connected"
    assert facts(told)["Address"] == play.session.connection.address
    assert told.tables == ()


async def test_a_game_that_does_not_answer_is_still_shown(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(3, FILES, Faults(silence=1.0)), RPC_TIMEOUT_MS="50") as play:
        assert facts(await report(play.session))["Files"] == "the game did not answer"
