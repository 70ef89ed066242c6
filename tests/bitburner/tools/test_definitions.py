"""The definitions: whole, or found by symbol and text; asked for once a connection."""

import asyncio
from pathlib import Path

import pytest

from bridgehead.bitburner.netscript.definitions import Definitions
from bridgehead.bitburner.netscript.search import DefinitionSearch
from tests.bitburner.playing import FILES, Play, bridged, played
from tests.support.game import Game
from tests.support.waiting import until

TEXT = """\
/** All netscript definitions */

/** @public */
interface HP {
  current: number;
  max: number;
}

/** @public */
type Port = string | number;

/**
 * A collection of all functions
 * @public
 */
export interface NS {
  /** Arguments passed into the script. */
  readonly args: (string | number | boolean)[];

  /**
   * Steal money.
   * @remarks
   * RAM cost: 0.1 GB
   */
  hack(host: string, opts?: BasicHGWOptions): Promise<number>;

  /** Run several lines of parameters. */
  exec(
    script: string,
    host: string,
    options?: {
      threads: number;
    },
  ): number;
}

export declare enum Colour {
  red = "RED",
}

/** @public */
export declare function late(): void;
"""


def test_an_entry_has_its_comment_and_all_its_lines() -> None:
    found = Definitions(TEXT)
    hack, execute = found.by_symbol["NS.hack"], found.by_symbol["NS.exec"]

    assert hack.text.startswith("/**\n * Steal money.")
    assert hack.text.endswith("Promise<number>;")
    assert TEXT.splitlines()[hack.line - 1].strip() == "/**"
    assert execute.text.splitlines()[-1] == "): number;"


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("hack", "NS.hack"),
        ("NS.hack", "NS.hack"),
        ("ns.HACK", "NS.hack"),
        ("steal money", "NS.hack"),
        ("hp", "HP"),
    ],
)
def test_the_best_fitting_declaration_comes_first(query: str, first: str) -> None:
    found = DefinitionSearch(Definitions(TEXT)).find(query, 5)

    assert found.declarations[0].symbol == first
    assert found.total >= len(found.declarations)


def test_a_file_that_is_cut_off_is_read_as_far_as_it_goes() -> None:
    for end in range(0, len(TEXT), 7):
        assert len(Definitions(TEXT[:end]).declarations) <= 12


async def test_the_whole_file_is_given_and_asked_for_once(play: Play) -> None:
    text, structured = await play.ok("get_netscript_definitions")
    again, _ = await play.ok("get_netscript_definitions")

    assert text == again
    assert structured is None  # it would be sent twice
    assert len(text) > 300_000
    assert len(play.asked("getDefinitionFile")) == 1


async def test_a_new_connection_asks_again(play: Play) -> None:
    await play.ok("search_definitions", query="hack")
    await play.game.dial(play.url)
    await until(lambda: play.session.connection.link is not None and not play.session.connection.link.memory)
    await play.ok("search_definitions", query="hack")

    assert len(play.asked("getDefinitionFile")) == 2


async def test_a_function_is_found_with_its_ram_cost(play: Play) -> None:
    text, structured = await play.ok("search_definitions", query="hack", limit=3)

    assert structured["definitions"][0]["symbol"] == "ns.hack"
    assert "RAM cost" in structured["definitions"][0]["text"]
    assert structured["definitions"][0]["text"] in text
    # A symbol is the whole answer; others of its name are named.
    assert len(structured["definitions"]) == 1
    assert "GangMemberInfo.hack" in structured["more"]
    assert f"Also: {', '.join(structured['more'])}." in text


async def test_words_bring_three_declarations_and_the_names_of_others(play: Play) -> None:
    text, structured = await play.ok("search_definitions", query="buy shares of a stock")

    assert structured["definitions"][0]["symbol"] == "ns.stock.buyStock"
    assert len(structured["definitions"]) == 3
    assert len(structured["more"]) == 15
    assert structured["more"][-1] in text


async def test_every_symbol_of_a_list_is_shown(play: Play) -> None:
    _, structured = await play.ok("search_definitions", query="hack, ns.grow, weaken, ns.stock.buyStock")

    shown = [one["symbol"] for one in structured["definitions"]]
    assert shown == ["ns.hack", "ns.grow", "ns.weaken", "ns.stock.buyStock"]


async def test_what_is_not_there_is_said_so(play: Play) -> None:
    text, structured = await play.ok("search_definitions", query="zzzzqqq")

    assert "Nothing in the definitions fits" in text
    assert structured["total"] == 0


async def test_a_miss_offers_near_names(play: Play) -> None:
    text, structured = await play.ok("search_definitions", query="ns.hakc")

    assert "Like it: hack" in text
    assert "hack" in structured["near"]


async def test_the_definitions_answer_while_the_game_is_away(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(3, FILES)) as play:
        text, _ = await play.ok("search_definitions", query="hack", limit=1)
        whole, _ = await play.ok("get_netscript_definitions")
    async with bridged(tmp_path) as play:
        away, found = await play.ok("search_definitions", query="hack", limit=1)

        assert found["notes"][0].startswith("No game is connected; these definitions are from 20")
        assert away == text
        assert found["definitions"][0]["symbol"] == "ns.hack"
        assert (await play.ok("get_netscript_definitions"))[0] == whole
        await play.game.dial(play.url)
        await until(lambda: play.session.connection.link is not None)
        assert (await play.ok("search_definitions", query="hack", limit=1))[0] == text


async def test_without_a_game_or_a_copy_the_steps_are_told(tmp_path: Path) -> None:
    async with bridged(tmp_path) as play:
        assert (await play.fails("search_definitions", query="hack"))[1]["code"] == "not_connected"


async def test_an_exact_interface_name_gives_its_whole_body(play: Play) -> None:
    text, structured = await play.ok("search_definitions", query="Singularity", limit=1)

    body = structured["definitions"][0]["text"]
    assert body in text
    assert "connect(hostname: string): boolean;  // 2 GB × 16/4/1" in body
    assert body.count("\n") > 50


async def test_calls_at_once_share_one_index_and_a_reconnect_keeps_it(play: Play) -> None:
    await asyncio.gather(*(play.ok("search_definitions", query="hack", limit=1) for _ in range(20)))
    first = await play.session.load_index()
    await play.game.dial(play.url)
    await until(lambda: play.session.connection.link is not None and not play.session.connection.link.memory)
    await play.ok("search_definitions", query="grow", limit=1)

    assert await play.session.load_index() is first
