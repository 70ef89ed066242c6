"""Sockets: how large an answer may be, and what becomes of one that is larger."""

from pathlib import Path

import pytest

from bridgehead.bitburner.game import sockets
from tests.bitburner.playing import played
from tests.support.game import Game
from tests.support.waiting import until


@pytest.fixture
def small_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the limit: an answer of 64 MiB, or four times that, is too much for a test."""
    monkeypatch.setattr(sockets, "MAX_FRAME_BYTES", 10 * 1024)


async def test_a_large_answer_goes_through(tmp_path: Path) -> None:
    content = "x" * 8_000_000
    async with played(tmp_path, game=Game(2, {"home": {"big.txt": content}})) as play:
        text, _ = await play.ok("read_file", filename="big.txt", max_characters=9_000_000)

    assert len(text) == len(content)


async def test_an_answer_over_the_limit_names_both_sizes_and_keeps_the_game(
    tmp_path: Path, generation: int, small_frames: None
) -> None:
    async with played(tmp_path, game=Game(generation, {"home": {"big.txt": "x" * 20_000}})) as play:
        text, problem = await play.fails("read_file", filename="big.txt")

        assert problem["code"] == "reply_too_large"
        assert "at most 10,240 are accepted" in text
        assert (await play.ok("list_files"))[0] == '["big.txt"]'
        assert play.count("ws_reconnects_total") == 0


async def test_an_answer_far_over_the_limit_ends_the_connection_and_names_the_cause(
    tmp_path: Path, small_frames: None
) -> None:
    async with played(tmp_path, game=Game(2, {"home": {"big.txt": "x" * 200_000}})) as play:
        text, _ = await play.fails("read_file", filename="big.txt")
        assert "Bitburner disconnected" in text
        assert "far larger than 10,240 bytes" in text
        assert await play.game.dial(play.url)
        await until(lambda: play.session.connection.link is not None)

        assert (await play.ok("list_files"))[0] == '["big.txt"]'
