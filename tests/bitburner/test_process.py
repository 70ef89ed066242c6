"""The real command, the official Python client, a real WebSocket: every tool and error, both generations."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from bridgehead.bitburner.simulator import Faults
from tests.bitburner.playing import FILES, PAGE, SCRIPT
from tests.bitburner.serving import HOST, environment, log_lines, serving
from tests.support.game import Game
from tests.support.ports import free_port
from tests.support.stdio_peer import ROOT
from tests.support.waiting import PATIENCE


@asynccontextmanager
async def official(state: Path, port: int, mode: str = "auto", **more: str) -> AsyncIterator[Client]:
    """The official client with the bridge as its process."""
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "bridgehead", "bitburner"],
        env=environment(state, port, **more),
        cwd=ROOT,
    )
    errors = (state.parent / "stderr").open("a", encoding="utf-8")
    with errors:
        async with Client(stdio_client(command, errlog=errors), mode=mode, read_timeout_seconds=20) as client:
            yield client


async def call_text(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool that must succeed; return its first text."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    is_text_alone = tool in ("get_all_files", "get_netscript_definitions")
    assert (result.structured_content is None) == is_text_alone
    return text_of(result)


async def refused(client: Client, tool: str, **arguments: Any) -> tuple[str, str]:
    """Call a tool that must fail; return its text and its code."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert isinstance(result.structured_content, dict)
    return text_of(result), result.structured_content["code"]


async def dial_as_soon_as_open(game: Game, port: int) -> None:
    """Dial until the port is open, which takes no tool call."""
    async with asyncio.timeout(PATIENCE):
        while not await game.dial(f"ws://{HOST}:{port}", PAGE):
            await asyncio.sleep(0.01)


def text_of(result: types.CallToolResult) -> str:
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    return block.text


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_every_tool_works_for_the_official_client(tmp_path: Path, generation: int, mode: str) -> None:
    port = free_port()
    async with official(tmp_path / "state", port, mode) as client, Game(generation, FILES) as game:
        await dial_as_soon_as_open(game, port)

        assert "Connected since" in await call_text(client, "connection_status")
        assert set(json.loads(await call_text(client, "list_files"))) == set(FILES["home"])
        assert await call_text(client, "read_file", filename="hack.js") == SCRIPT
        assert len(json.loads(await call_text(client, "get_all_files"))) == 3
        assert await call_text(client, "search_files", pattern="tw") == "notes.txt:2: two"
        written = await call_text(client, "write_file", filename="new.js", content=SCRIPT)
        assert written == "OK"
        assert game.servers["home"]["new.js"] == SCRIPT
        assert "Replaced 1" in await call_text(
            client, "edit_file", filename="new.js", old_text="n00dles", new_text="x"
        )
        assert "Restored" in await call_text(client, "restore_file", filename="new.js")
        assert game.servers["home"]["new.js"] == SCRIPT
        assert float(await call_text(client, "calculate_ram", filename="new.js")) == 1.7
        assert await call_text(client, "delete_file", filename="new.js") == "OK"
        assert len(await call_text(client, "get_netscript_definitions")) > 300_000
        assert "ns.hack" in await call_text(client, "search_definitions", query="hack")
        assert "home" in await call_text(client, "list_servers")
        assert ".json.gz" in await call_text(client, "backup_save")
        if generation == 3:
            assert "modified" in await call_text(client, "get_file_metadata", filename="hack.js")
        else:
            assert (await refused(client, "get_file_metadata"))[1] == "unsupported_by_game"


async def test_every_error_path_reaches_the_official_client(tmp_path: Path, generation: int) -> None:
    port = free_port()
    limits = {"RPC_TIMEOUT_MS": "3000", "BITBURNER_CONNECT_WAIT_MS": "1000", "FILE_WRITE_MAX_BYTES": "50"}
    async with official(tmp_path / "state", port, **limits) as client, Game(generation, FILES) as game:
        text, code = await refused(client, "list_files")
        assert code == "not_connected"
        assert f"set host {HOST} and port {port}" in text
        assert await game.dial(f"ws://{HOST}:{port}")

        assert (await refused(client, "read_file", filename="a b.js"))[1] == "invalid_argument"
        assert (await refused(client, "read_file", nonsense=1))[1] == "invalid_argument"
        assert (await refused(client, "write_file", filename="a.js", content="x" * 51))[
            1
        ] == "invalid_argument"
        assert (await refused(client, "read_file", filename="missing.js"))[1] == "not_found"
        assert (await refused(client, "list_files", server="nope"))[1] == "remote_error"
        game.faults = Faults(silence=1.0, times=1)
        text, code = await refused(client, "list_files")
        assert code == "timeout"
        assert "within 3" in text
        game.faults = Faults(drop=1.0, times=1)
        text, code = await refused(client, "list_files")
        assert (code, "Bitburner disconnected" in text) == ("disconnected", True)


async def test_resources_prompts_and_completions_work_for_the_official_client(tmp_path: Path) -> None:
    port = free_port()
    async with official(tmp_path / "state", port) as client, Game(3, FILES) as game:
        await dial_as_soon_as_open(game, port)
        assert "Connected" in await call_text(client, "connection_status")
        listed = (await client.list_resources()).resources
        read = await client.read_resource("bitburner://home/notes.txt")
        filled = await client.get_prompt("slim_script", {"filename": "hack.js"})
        template = types.ResourceTemplateReference(type="ref/resource", uri="bitburner://{server}/{+path}")
        completed = await client.complete(template, {"name": "path", "value": "lib"}, {"server": "home"})

    assert len(listed) == 3
    (content,) = read.contents
    assert isinstance(content, types.TextResourceContents)
    assert content.text == FILES["home"]["notes.txt"]
    assert isinstance(filled.messages[0].content, types.TextContent)
    assert SCRIPT in filled.messages[0].content.text
    assert completed.completion.values == ["lib/tools.js"]


async def test_the_log_tells_calls_and_connections_and_never_a_content(tmp_path: Path) -> None:
    port = free_port()
    errors = tmp_path / "stderr"
    private = "content that must stay in the game"
    variables = environment(tmp_path / "state", port, MCP_LOG_LEVEL="debug", RPC_TIMEOUT_MS="3000")
    with serving(errors, variables) as bridge:
        await bridge.status()
        async with Game(3, {"home": {"a.txt": private}}) as game:
            assert await game.dial(f"ws://{HOST}:{port}")
            assert await bridge.text("read_file", filename="a.txt") == private
            await bridge.text("write_file", filename="a.txt", content=f"{private}, changed")
            await bridge.text("edit_file", filename="a.txt", old_text=private, new_text=f"other {private}")
            await bridge.text("edit_file", filename="a.txt", old_text=f"no such {private}", new_text="")
            game.faults = Faults(garbage=1.0)
            await bridge.text("get_all_files")
            game.faults = Faults(silence=1.0)
            await bridge.text("list_files")
        bridge.peer.close_input()
        assert bridge.peer.exit_code() == 0

    text = errors.read_text(encoding="utf-8")
    events = [(line["event"], line.get("tool")) for line in log_lines(errors)]
    assert private not in text
    assert ("starting", None) in events
    assert ("listening", None) in events
    assert ("game connected", None) in events
    assert ("tool called", "write_file") in events
    assert ("tool failed", "list_files") in events
    (written,) = [one for one in log_lines(errors) if one.get("tool") == "write_file"]
    assert (written["server"], written["filename"], written["characters"]) == (
        "home",
        "a.txt",
        len(private) + 9,
    )


def test_a_bad_setting_is_one_line_and_status_2(tmp_path: Path) -> None:
    import subprocess

    done = subprocess.run(
        [sys.executable, "-m", "bridgehead", "bitburner"],
        env={**os.environ, "RPC_TIMEOUT_MS": "soon"},
        input="",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "RPC_TIMEOUT_MS is 'soon'" in done.stderr
