"""The definitions: whole, or found by symbol and text; asked for once a connection."""

import pytest

from bridgehead.bitburner.game.definitions import Definitions
from tests.bitburner.playing import Play
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


def test_a_definition_file_is_cut_into_its_declarations() -> None:
    symbols = [entry.symbol for entry in Definitions(TEXT).entries]

    assert symbols == [
        "HP",
        "HP.current",
        "HP.max",
        "Port",
        "NS",
        "NS.args",
        "NS.hack",
        "NS.exec",
        "Colour",
        "late",
    ]


def test_an_entry_has_its_comment_and_all_its_lines() -> None:
    ((hack,), _), ((execute,), _) = Definitions(TEXT).find("ns.hack", 1), Definitions(TEXT).find("exec", 1)

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
    found, total = Definitions(TEXT).find(query, 5)

    assert found[0].symbol == first
    assert total >= len(found)


def test_a_file_that_is_cut_off_is_read_as_far_as_it_goes() -> None:
    for end in range(len(TEXT)):
        assert len(Definitions(TEXT[:end]).entries) <= 11


async def test_the_whole_file_is_given_and_asked_for_once(play: Play) -> None:
    text, structured = await play.ok("get_netscript_definitions")
    again, _ = await play.ok("get_netscript_definitions")

    assert text == again == structured["definitions"]
    assert len(text) > 300_000
    assert len(play.asked("getDefinitionFile")) == 1


async def test_a_new_connection_asks_again(play: Play) -> None:
    await play.ok("search_definitions", query="hack")
    await play.game.dial(play.url)
    await until(lambda: play.session.board.link is not None and not play.session.board.link.memory)
    await play.ok("search_definitions", query="hack")

    assert len(play.asked("getDefinitionFile")) == 2


async def test_a_function_is_found_with_its_ram_cost(play: Play) -> None:
    text, structured = await play.ok("search_definitions", query="hack", limit=3)

    assert structured["definitions"][0]["symbol"] == "NS.hack"
    assert "RAM cost" in structured["definitions"][0]["text"]
    assert structured["definitions"][0]["text"] in text
    assert structured["total"] > 3
    assert "more; ask for something narrower" in text


async def test_what_is_not_there_is_said_so(play: Play) -> None:
    text, structured = await play.ok("search_definitions", query="zzzzqqq")

    assert "Nothing in the definitions fits" in text
    assert structured == {"definitions": [], "total": 0}
