"""`list_servers`: every server in one group, and only those that were asked for."""

from pathlib import Path

from tests.bitburner.playing import FILES, Play, played
from tests.support.game import Game


async def test_every_server_is_in_one_group(play: Play) -> None:
    text, found = await play.ok("list_servers")
    names = [*found["purchased"], *found["rooted"], *found["unrooted"]]

    assert "home" in found["purchased"]
    assert len(names) == len(set(names)) == found["total"]
    assert text.startswith("Owned by the player (")


async def test_a_group_and_a_pattern_narrow_the_list(play: Play) -> None:
    _, owned = await play.ok("list_servers", only="purchased")
    text, none = await play.ok("list_servers", glob="no-such-*")
    _, home = await play.ok("list_servers", glob="ho*", only="purchased")

    assert (owned["rooted"], owned["unrooted"]) == ([], [])
    assert (text, none["total"]) == ("No server fits.", 0)
    assert home["purchased"] == ["home"]


async def test_a_game_that_lacks_the_list_of_servers_says_so(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(2, FILES, lacking={"getAllServers"})) as play:
        text, problem = await play.fails("list_servers")

    assert problem["code"] == "unsupported_by_game"
    assert "too old" in text
    assert "2.6" in text


async def test_servers_are_listed_with_what_the_player_has(play: Play) -> None:
    play.game.servers.update({"n00dles": {}, "joesguns": {}, "pserv-0": {}})
    play.game.world.rooted |= {"n00dles", "pserv-0"}
    play.game.world.purchased.add("pserv-0")
    text, structured = await play.ok("list_servers")

    assert structured == {
        "purchased": ["home", "pserv-0"],
        "rooted": ["n00dles"],
        "unrooted": ["joesguns"],
        "total": 4,
    }
    assert "Owned by the player (2): home, pserv-0" in text
    assert (await play.ok("list_servers", only="rooted"))[1]["total"] == 1
    assert (await play.ok("list_servers", glob="p*"))[1]["purchased"] == ["pserv-0"]


async def test_the_servers_of_a_fresh_game_take_less_than_two_kilobytes(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(3)) as play:
        text, structured = await play.ok("list_servers")

    assert structured["total"] == 72
    assert len(text) < 2000
