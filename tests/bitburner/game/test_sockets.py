"""Requests made at once: they go out in order, wait for a slow reader, and can be taken back."""

import asyncio
from pathlib import Path

from tests.bitburner.playing import FILES, played
from tests.support.game import Game
from tests.support.waiting import until


async def test_a_thousand_requests_at_once_arrive_in_order(tmp_path: Path) -> None:
    files = {"home": {f"f{number}.txt": str(number) for number in range(1000)}}
    async with played(tmp_path, game=Game(3, files)) as play:
        answers = await asyncio.gather(
            *(play.session.remote.read(f"f{number}.txt", "home") for number in range(1000))
        )

        assert answers == [str(number) for number in range(1000)]
        assert [asked["filename"] for asked in play.asked("getFile")] == list(files["home"])


async def test_a_game_that_does_not_read_gets_no_more_than_it_can_take_and_the_rest_later(
    tmp_path: Path,
) -> None:
    async with played(tmp_path, game=Game(3, FILES), RPC_TIMEOUT_MS="60000") as play:
        play.game.freeze()
        writing = [
            asyncio.ensure_future(play.session.remote.push(f"big{number}.txt", "x" * 900_000, "home"))
            for number in range(20)
        ]
        await asyncio.sleep(0.05)
        assert not any(one.done() for one in writing)
        play.game.thaw()
        await asyncio.gather(*writing)

        assert sum(len(content) for content in play.game.servers["home"].values()) > 20 * 900_000


async def test_a_call_that_is_given_up_before_it_was_sent_is_never_sent(tmp_path: Path) -> None:
    async with played(
        tmp_path, game=Game(3, FILES), RPC_TIMEOUT_MS="3000", BITBURNER_BACKUP_DIR="off"
    ) as play:
        play.game.freeze()
        await asyncio.gather(
            *(
                play.fails("write_file", filename=f"big{number}.txt", content="x" * 900_000)
                for number in range(30)
            )
        )
        play.game.thaw()
        await play.ok("list_files")

        assert len(play.asked("pushFile")) < 30
        link = play.session.connection.link
        assert link is not None
        await until(lambda: link.pending == 0)
