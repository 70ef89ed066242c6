"""The save file: bytes or base64 in, gzip out; anything else is refused; the oldest copies go."""

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from bridgehead.bitburner.errors import InvalidReply
from bridgehead.bitburner.game.remote import Save
from bridgehead.bitburner.tools.saves import packed
from tests.bitburner.playing import FILES, Play, played
from tests.support.game import Game
from tests.support.posix import is_private
from tests.support.task_client import join

JSON = b'{"PlayerSave": 1}'


def test_a_binary_save_has_one_character_a_byte() -> None:
    zipped = gzip.compress(JSON)

    assert packed(Save("me", binary=True, save=zipped.decode("latin-1"))) == zipped


def test_a_save_in_base64_is_zipped_here() -> None:
    assert gzip.decompress(packed(Save("me", binary=False, save=base64.b64encode(JSON).decode()))) == JSON


@pytest.mark.parametrize(
    "save",
    [
        Save("me", binary=True, save="not gzip"),
        Save("me", binary=True, save="☃"),
        Save("me", binary=False, save="no base64!"),
    ],
)
def test_what_is_no_save_is_refused(save: Save) -> None:
    with pytest.raises(InvalidReply):
        packed(save)


async def test_only_the_newest_copies_stay(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(3, FILES), BITBURNER_BACKUP_DIR=str(tmp_path / "kept")) as play:
        folder = tmp_path / "kept" / "saves"
        folder.mkdir(parents=True)
        for number in range(25):
            (folder / f"20200101T0000{number:02}Z-old.json.gz").write_bytes(b"old")
        _, saved = await play.ok("backup_save")

    left = sorted(path.name for path in folder.iterdir())
    assert len(left) == 20
    assert left[-1] == Path(saved["path"]).name


async def test_a_folder_that_cannot_be_written_to_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("in the way", encoding="utf-8")
    async with played(tmp_path, game=Game(3, FILES), BITBURNER_BACKUP_DIR=str(tmp_path / "kept")) as play:
        _, problem = await play.fails("backup_save")

    assert problem["code"] == "storage"


async def test_the_save_is_kept_as_gzipped_json_on_this_machine(play: Play, tmp_path: Path) -> None:
    import gzip

    text, saved = await play.ok("backup_save")

    path = Path(saved["path"])
    assert path.name.endswith(".json.gz")
    assert str(path) in text
    assert path.is_relative_to(tmp_path)
    assert is_private(path)
    assert json.loads(gzip.decompress(path.read_bytes()))


async def test_a_game_that_cannot_give_its_save_is_too_old(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(2, FILES, lacking={"getSaveFile"})) as play:
        text, problem = await play.fails("backup_save")

    assert problem["code"] == "unsupported_by_game"
    assert "2.8" in text


@pytest.mark.parametrize(
    ("tool", "arguments"), [("backup_save", {}), ("search_files", {"server": "home", "pattern": "ns"})]
)
async def test_what_may_take_long_can_become_a_task(tmp_path: Path, tool: str, arguments: Any) -> None:
    async with played(tmp_path, game=Game(3, FILES), BITBURNER_BACKUP_DIR=str(tmp_path / "kept")) as play:
        direct = await play.client.call(tool, arguments)
        dispatcher = play.client.dispatcher
        dispatcher.bridge.tools[tool].task_grace_seconds = 0
        client = join(dispatcher)
        task = await client.end(await client.make(tool, arguments))
        await dispatcher.tasks.stop()

    assert task["status"] == "completed"
    assert task["result"]["structuredContent"].keys() == direct["structuredContent"].keys()
