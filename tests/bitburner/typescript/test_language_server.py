"""Language server: a process that hangs, dies or talks nonsense is killed, and the caller told."""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bridgehead.bitburner.typescript.language_server import LanguageServer, ServerFailed
from tests.bitburner.typescript.fake_server import write_program

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the program is a script")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[LanguageServer]:
    running = await LanguageServer.start(write_program(tmp_path / "tsc"), tmp_path)
    yield running
    await running.kill()


async def test_a_text_is_diagnosed_again_and_again(server: LanguageServer) -> None:
    (first,) = await server.diagnose("let a;\n  wrong", "js")
    assert (first.code, first.range.start.line, first.range.start.character) == (2304, 1, 2)
    assert await server.diagnose("right", "tsx") == []


async def test_a_server_that_hangs_is_killed_at_the_deadline(server: LanguageServer, tmp_path: Path) -> None:
    with pytest.raises(ServerFailed):
        await server.diagnose("hang", "js", 1.0)

    pid = int((tmp_path / "hanging").read_text())
    with pytest.raises(ProcessLookupError):  # it ignores SIGTERM, so it was SIGKILL
        os.kill(pid, 0)


@pytest.mark.parametrize("text", ["crash", "garbage"])
async def test_a_server_that_fails_is_reported(server: LanguageServer, text: str) -> None:
    with pytest.raises(ServerFailed):
        await server.diagnose(text, "js")
    with pytest.raises(ServerFailed):
        await server.diagnose("right", "js")


async def test_a_program_that_cannot_start_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ServerFailed):
        await LanguageServer.start(tmp_path / "gone", tmp_path)
