"""Paths: which names the game takes, by generation."""

from pathlib import Path

import pytest

from bridgehead.bitburner.simulator.paths import is_script, is_text, read_folder, resolve
from bridgehead.runtime.errors import NotFound
from tests.bitburner.simulator.listening import listening, next_frame, request
from tests.bitburner.simulator.simulating import simulated, until


async def test_home_holds_the_files_of_a_folder_that_a_game_can_hold(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "scan.js").write_bytes(b"ns.scan()\n")
    (tmp_path / "raw.txt").write_bytes(b"\xff")
    (tmp_path / "two words.js").touch()
    (tmp_path / "photo.png").touch()
    async with listening() as server, simulated("--url", server.url, "--files", str(tmp_path)) as game:
        connection = await server.next()
        await connection.send(request(1, "getAllFiles", server="home"))

        assert (await next_frame(connection))["result"] == [
            {"filename": "lib/scan.js", "content": "ns.scan()\n"}
        ]
        assert (await until(game, "Left out")).endswith("photo.png, raw.txt, two words.js")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a.js", "a.js"),
        ("/a.js", "a.js"),
        ("lib/a.js", "lib/a.js"),
        ("./lib/../a.js", "a.js"),
        ("lib/./a.js", "lib/a.js"),
    ],
)
def test_a_name_means_a_path_without_its_steps(name: str, path: str) -> None:
    assert resolve(name) == path


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a",
        ".js",
        "a.",
        "../a.js",
        "/lib/../a.js",
        "lib//a.js",
        "two words.js",
        "a*.js",
        "lib/",
        "a\\b.js",
    ],
)
def test_what_the_game_refuses_is_no_path(name: str) -> None:
    assert resolve(name) is None


def test_style_sheets_are_texts_of_the_third_generation_alone() -> None:
    assert [is_text("a.css", generation) for generation in (2, 3)] == [False, True]
    assert (is_script("a.tsx"), is_script("a.txt"), is_text("a.txt", 2)) == (True, False, True)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="There is no folder"):
        read_folder(tmp_path / "none", 2)
