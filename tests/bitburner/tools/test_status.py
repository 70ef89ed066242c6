"""`connection_status`: how things stand, in figures and in words."""

import json
from pathlib import Path

from bridgehead.bitburner.simulator import Faults
from tests.bitburner.playing import FILES, Play, bridged, played
from tests.support.game import Game
from tests.support.waiting import until


async def test_figures_are_those_of_the_connection(play: Play) -> None:
    _, status = await play.ok("connection_status")

    assert (status["state"], status["role"], status["address"]) == (
        "connected",
        "owner",
        play.session.connection.address,
    )
    assert (status["pending"], status["guests"], status["timeouts"], status["reconnects"]) == (0, 0, 0, 0)
    assert status["differences"] == []


async def test_a_game_that_went_and_came_back_is_a_reconnection(play: Play) -> None:
    await play.game.hang_up()
    await until(lambda: play.session.connection.link is None)
    assert (await play.ok("connection_status"))[1]["state"] != "connected"
    await play.game.dial(play.url)
    await until(lambda: play.session.connection.link is not None)

    assert (await play.ok("connection_status"))[1]["reconnects"] == 1


TEMPLATE = "bitburner://{server}/{+path}"


async def test_the_status_tells_generation_origin_and_since_when(play: Play, generation: int) -> None:
    text, status = await play.ok("connection_status")

    assert status["state"] == "connected"
    assert status["generation"] == {2: "2.6 or later", 3: "3.x"}[generation]
    assert status["game"] == "https://bitburner-official.github.io"
    assert status["since"].endswith("Z")
    assert status["next_step"] == "Nothing; go ahead."
    assert "Connected since" in text


async def test_an_older_game_is_told_by_what_it_lacks(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(2, FILES, lacking={"getAllServers"})) as play:
        assert (await play.ok("connection_status"))[1]["generation"] == "2.x before 2.6"


async def test_a_game_that_does_not_answer_has_no_known_generation(tmp_path: Path) -> None:
    game = Game(3, FILES, Faults(silence=1.0))
    async with played(tmp_path, game=game, RPC_TIMEOUT_MS="50") as play:
        assert "did not answer" in (await play.ok("connection_status"))[1]["generation"]


async def test_the_status_says_what_to_do_and_what_is_read_only(tmp_path: Path) -> None:
    async with bridged(tmp_path, BITBURNER_READ_ONLY="1") as play:
        text, status = await play.ok("connection_status")

    assert (status["state"], status["role"], status["read_only"]) == ("waiting", "owner", True)
    assert "No game is connected." in text
    assert "Next: In Bitburner open Options" in text
    assert "Read-only" in text
    assert json.dumps(status)
