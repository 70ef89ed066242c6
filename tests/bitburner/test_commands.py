"""What a person types: doctor in one screen, the settings, and words that are wrong."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bitburner.playing import FILES, bridged, played
from tests.bitburner.serving import HOST, environment
from tests.support.game import Game
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE


async def run(state: Path, port: int, *words: str, **more: str) -> tuple[int, str]:
    """Run a command to its end; return its status and all it said, its line breaks undone."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bridgehead",
        "bitburner",
        *words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment(state, port, **{"COLUMNS": "100", "PYTHONIOENCODING": "utf-8", **more}),
    )
    async with asyncio.timeout(PATIENCE):
        said, _ = await process.communicate()
    return process.returncode or 0, said.decode()


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(("number", "named"), [(2, "2.6 or later"), (3, "3.x: every tool works")])
async def test_the_doctor_sees_a_game_that_dials_in(tmp_path: Path, number: int, named: str) -> None:
    port = free_port()
    async with Game(number, FILES) as game:
        examining = asyncio.ensure_future(run(tmp_path, port, "doctor", "--wait", "15"))
        while not await game.dial(f"ws://{HOST}:{port}"):
            await asyncio.sleep(0.05)
        status, said = await examining

    assert status == 0
    assert f"{HOST}:{port} is free" in said
    assert "connected, from a program without an origin" in flat(said)
    assert named in said
    assert "permission" in said
    assert len(said.splitlines()) <= 24


async def test_the_doctor_says_what_is_missing_and_what_to_do(tmp_path: Path) -> None:
    status, said = await run(tmp_path, free_port(), "doctor", "--wait", "0.1", BITBURNER_BACKUP_DIR="off")

    assert status == 1
    assert "none connected within 0.1 s" in flat(said)
    assert "Options → Remote API" in flat(said)
    assert "an overwritten file is lost" in flat(said)


async def test_the_doctor_shares_the_game_of_a_running_bridge(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(3, FILES)) as play:
        port = int(play.session.connection.address.rpartition(":")[2])
        status, said = await run(tmp_path, port, "doctor")

        assert status == 0
        assert "held by another bridge of yours" in flat(said)
        assert "3.x" in said
        assert play.game.is_connected


async def test_the_doctor_names_what_holds_the_port(tmp_path: Path) -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), HOST, 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        status, said = await run(tmp_path, port, "doctor", "--wait", "0.1")

    assert status == 1
    assert f"Port {port} is taken by a program that does not speak HTTP" in flat(said)
    assert flat(said).count("is taken by") == 1
    assert "generation" not in said


async def test_the_doctor_sees_folders_that_others_can_look_into(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    _, said = await run(
        tmp_path,
        free_port(),
        "doctor",
        "--wait",
        "0.1",
        BITBURNER_BACKUP_DIR=str(folder),
        BITBURNER_READ_ONLY="1",
    )

    assert "is readable by other users (755)" in flat(said)
    assert "reading only" in said


async def test_the_doctor_tells_of_a_state_folder_that_cannot_be_made(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    status, said = await run(blocked / "state", free_port(), "doctor", "--wait", "0.1")

    assert status == 1
    assert f"{blocked} cannot be written to" in flat(said)
    assert "Choose another folder." in flat(said)


async def test_the_doctor_tells_that_an_address_is_dialled(tmp_path: Path) -> None:
    async with bridged(tmp_path) as play:
        url = f"{play.url}/bridgehead/relay"
        _, said = await run(tmp_path, free_port(), "doctor", "--wait", "0.5", BITBURNER_RPC_URL=url)

    assert "BITBURNER_RPC_URL is set" in flat(said)


async def test_settings_are_printed_with_their_values(tmp_path: Path) -> None:
    status, said = await run(tmp_path, 12599, "settings", COLUMNS="150")

    assert status == 0
    assert "127.0.0.1:12599" in said
    assert "RPC_RECONNECT_MAX_ATTEMPTS" in said


@pytest.mark.parametrize(
    "words", [["nonsense"], ["settings", "more"], ["doctor", "--wait", "x"], ["doctor", "--wait", "nan"]]
)
async def test_wrong_words_are_answered_in_one_line(tmp_path: Path, words: list[str]) -> None:
    status, said = await run(tmp_path, 12599, *words)

    assert status == 2
    assert said.count("\n") == 1
    assert "Usage: bridgehead bitburner" in said or "Valid values are doctor, " in said


async def test_help_lists_the_commands(tmp_path: Path) -> None:
    status, said = await run(tmp_path, 12599, "--help")

    assert status == 0
    assert all(word in said for word in ("doctor", "settings", "simulate"))


async def test_simulate_is_one_of_the_commands(tmp_path: Path) -> None:
    status, said = await run(tmp_path, 12599, "simulate", "--help")

    assert status == 0
    assert "--generation" in said
