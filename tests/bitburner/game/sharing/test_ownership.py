"""Who holds the port: it is taken when it becomes free, and a port that cannot be had is said so."""

from pathlib import Path

from tests.bitburner.game.sharing.test_port_probe import HTTP, holding
from tests.bitburner.playing import FILES, bridged
from tests.support.game import Game
from tests.support.waiting import until


async def test_a_port_that_becomes_free_is_taken(tmp_path: Path) -> None:
    async with holding(HTTP) as address:
        play_context = bridged(tmp_path, BITBURNER_LISTEN=address)
        play = await play_context.__aenter__()
        assert play.session.connection.problem
    try:
        await until(lambda: not play.session.connection.problem)
        assert await play.game.dial(f"ws://{address}")
    finally:
        await play_context.__aexit__(None, None, None)


async def test_a_port_that_may_not_be_had_is_said_so(tmp_path: Path) -> None:
    async with bridged(tmp_path, BITBURNER_LISTEN="127.250.250.250.1:5") as play:
        text, _ = await play.fails("list_files")

    assert "Cannot listen on" in text


async def test_two_games_of_one_player_find_the_same_bridge_again(tmp_path: Path) -> None:
    async with bridged(tmp_path) as play, Game(2, FILES) as game:
        assert await game.dial(play.url)
        await until(lambda: play.session.connection.link is not None)
        assert (await play.ok("connection_status"))[1]["state"] == "connected"
