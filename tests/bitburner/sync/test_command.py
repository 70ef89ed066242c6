"""The command: a folder and a game in step, as a person runs it."""

import asyncio
import locale
import os
import signal
import sys
from pathlib import Path

from tests.bitburner.serving import HOST, environment, serving
from tests.support.game import Game
from tests.support.ports import free_port
from tests.support.stdio_peer import ROOT
from tests.support.waiting import PATIENCE, until

HOME = {"hack.js": "// hack\n", "notes.txt": "notes"}


async def start(port: int, tmp_path: Path, *words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bridgehead", "bitburner", "sync", str(tmp_path / "scripts"), *words),
        cwd=ROOT,
        env=environment(tmp_path / "state", port),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


async def finish(process: asyncio.subprocess.Process) -> tuple[int, str]:
    async with asyncio.timeout(PATIENCE):
        said, _ = await process.communicate()
    text = said.decode(locale.getpreferredencoding(do_setlocale=False))
    return process.returncode or 0, text.replace("\r\n", "\n")


async def keep_dialling(game: Game, port: int) -> None:
    while True:
        if not game.is_connected:
            await game.dial(f"ws://{HOST}:{port}")
        await asyncio.sleep(0.05)


async def test_it_stays_in_step_until_it_is_told_to_end(tmp_path: Path) -> None:
    port, folder = free_port(), tmp_path / "scripts"
    async with Game(3, {"home": HOME}) as game:
        playing = asyncio.create_task(keep_dialling(game, port))
        process = await start(port, tmp_path)
        await until(lambda: (folder / "hack.js").exists() and (folder / "notes.txt").exists())
        assert (folder / "NetscriptDefinitions.d.ts").stat().st_size > 300_000
        assert "@ns" in (folder / "tsconfig.json").read_text(encoding="utf-8")

        async def edit() -> bool:
            (folder / "hack.js").write_text(f"// edited {os.urandom(4).hex()}\n", encoding="utf-8")
            await asyncio.sleep(0.3)
            return game.servers["home"]["hack.js"].startswith("// edited")

        async with asyncio.timeout(PATIENCE):
            while not await edit():
                pass
        process.send_signal(signal.SIGINT)
        status, said = await finish(process)
        playing.cancel()

    assert status == 0
    assert "Sent 0, received 2, in conflict 0." in said
    assert "← game" in said
    assert "→ game" in said
    assert "Traceback" not in said


async def test_it_shares_the_game_of_an_agents_bridge_and_pushes_once(tmp_path: Path) -> None:
    port, folder = free_port(), tmp_path / "scripts"
    folder.mkdir()
    (folder / "mine.js").write_bytes(b"// mine\n")
    with serving(tmp_path / "stderr", environment(tmp_path / "state", port)) as agent:
        async with Game(3, {"home": HOME}) as game:
            await agent.status()
            assert await game.dial(f"ws://{HOST}:{port}")
            status, said = await finish(await start(port, tmp_path, "--push"))
            assert status == 0, said
            assert game.servers["home"]["mine.js"] == "// mine\n"
            assert not (folder / "hack.js").exists()
            assert await agent.text("read_file", filename="mine.js") == "// mine\n"
            status, said = await finish(await start(port, tmp_path, "--dry-run"))
            assert "2 changes would be made; nothing was changed." in said
            assert not (folder / "hack.js").exists()


async def test_without_a_game_it_says_what_to_do(tmp_path: Path) -> None:
    status, said = await finish(await start(free_port(), tmp_path, "--wait", "0.1"))

    assert status == 1
    assert said.startswith("Waiting up to 0.1 s for the game to connect …\n")
    assert "Bitburner disconnected" in said
    shown = " ".join(said.split()).replace("->", "→")  # where the console has no arrow
    assert "Options → Remote API" in shown


async def test_many_deletes_need_a_person_or_yes_and_files_go_to_further_servers(tmp_path: Path) -> None:
    port, folder = free_port(), tmp_path / "scripts"
    files = {f"{number}.txt": "1" for number in range(5)}
    async with Game(3, {"home": dict(files), "pserv-0": {}}) as game:
        playing = asyncio.create_task(keep_dialling(game, port))
        status, said = await finish(await start(port, tmp_path, "--pull"))
        assert status == 0, said
        for number in range(3):
            (folder / f"{number}.txt").unlink()
        status, said = await finish(await start(port, tmp_path, "--push", "--delete"))
        assert "Delete 3 of 5 files? They are kept for restore_file. Not without --yes" in said
        assert game.servers["home"] == files
        words = ("--push", "--delete", "--yes", "--to", "pserv-0")
        status, said = await finish(await start(port, tmp_path, *words))
        playing.cancel()

    assert status == 0, said
    assert game.servers == {"home": {"3.txt": "1", "4.txt": "1"}, "pserv-0": {"3.txt": "1", "4.txt": "1"}}
