"""The Remote API: any reply to a call ends it clearly, and errors keep what the game said."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.bitburner.playing import Play, bridged
from tests.support.waiting import PATIENCE


async def test_an_error_object_keeps_its_message_and_code(tmp_path: Path) -> None:
    async with bridged(tmp_path) as play, dialled(play) as socket:
        call = asyncio.ensure_future(play.fails("list_files"))
        await reply(socket, error={"code": -32050, "message": "no such luck"})
        text, problem = await call

        assert "no such luck (code -32050)" in text
        assert (problem["remote_message"], problem["remote_code"]) == ("no such luck", -32050)


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"error": {"code": -32601, "message": "Method not found"}}, "unsupported_by_game"),
        ({"error": {"reason": 1}}, "remote_error"),
        ({"error": ["odd"]}, "remote_error"),
        ({"error": {"code": True, "message": "x"}}, "remote_error"),
        ({}, "odd_reply"),
        ({"result": 5}, "odd_reply"),
        ({"result": None}, "odd_reply"),
    ],
)
async def test_any_reply_to_a_call_ends_it_clearly(
    tmp_path: Path, members: dict[str, Any], code: str
) -> None:
    async with bridged(tmp_path) as play, dialled(play) as socket:
        call = asyncio.ensure_future(play.fails("list_files"))
        await reply(socket, **members)

        assert (await call)[1]["code"] == code


async def test_a_null_error_beside_a_result_is_no_error(tmp_path: Path) -> None:
    async with bridged(tmp_path) as play, dialled(play) as socket:
        call = asyncio.ensure_future(play.ok("list_files"))
        await reply(socket, result=["a.js"], error=None)

        assert (await call)[0] == '["a.js"]'


def dialled(play: Play) -> connect:
    return connect(play.url, proxy=None)


async def reply(socket: ClientConnection, **members: Any) -> None:
    asked = json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))
    await socket.send(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **members}))
