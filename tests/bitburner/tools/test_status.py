"""`connection_status`: how things stand, in figures and in words."""

from tests.bitburner.playing import Play
from tests.support.waiting import until


async def test_figures_are_those_of_the_connection(play: Play) -> None:
    _, status = await play.ok("connection_status")

    assert (status["state"], status["role"], status["address"]) == (
        "connected",
        "owner",
        play.session.board.address,
    )
    assert (status["pending"], status["guests"], status["timeouts"], status["reconnects"]) == (0, 0, 0, 0)
    assert status["differences"] == []


async def test_a_game_that_went_and_came_back_is_a_reconnection(play: Play) -> None:
    await play.game.hang_up()
    await until(lambda: play.session.board.link is None)
    assert (await play.ok("connection_status"))[1]["state"] != "connected"
    await play.game.dial(play.url)
    await until(lambda: play.session.board.link is not None)

    assert (await play.ok("connection_status"))[1]["reconnects"] == 1
