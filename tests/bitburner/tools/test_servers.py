"""`list_servers`: every server in one group, and only those that were asked for."""

from tests.bitburner.playing import Play


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
