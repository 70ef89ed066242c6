"""Definitions: as long as the game's, and with everything that a search looks for."""

from tests.bitburner.simulator.asking import ask
from tests.support.game import World


def test_the_definitions_are_as_long_as_the_games_and_can_be_searched() -> None:
    text = ask(World(2), "getDefinitionFile")["result"]

    assert 330_000 < len(text) < 340_000
    assert "  hack(host: string, opts?: BasicHGWOptions): Promise<number>;" in text
    assert "RAM cost: 1.3 GB\n" in text
    assert "  exec(script: string, hostname: string," in text
    for hidden in (
        "class: number;",
        "public: boolean;",
        "declare enum PositionType",
        "RAM cost: 2 GB * 16/4/1",
    ):
        assert hidden in text
