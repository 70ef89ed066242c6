"""Keys: where they come from, which one is used, and that none is ever shown."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mercury.calling.keys import Keys
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import NAMED, Fault, Simulator
from tests.mercury.process import (
    KEY,
    bridge_process,
    environment,
)
from tests.support.clock import Clock
from tests.support.posix import read_title
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "mercury_chat_completion"
ASK = {"messages": [{"role": "user", "content": "Of keys, in 8 words"}]}
FIRST, SECOND, THIRD = "sk_first_0123456789", "sk_second_0123456789", "sk_third_0123456789"


def used(api: Simulator) -> list[str]:
    return [request.key for request in api.requests.to("/chat/completions")]


async def test_without_a_key_the_server_starts_and_each_call_says_how_to_set_one(
    api: Simulator, tmp_path: Path
) -> None:
    async with bridge_process(api.url, tmp_path, MERCURY_API_KEY="") as client:
        tools = (await client.request("tools/list"))["tools"]
        calls: dict[str, dict[str, Any]] = {
            CHAT: ASK,
            "mercury_chat_stream": ASK,
            "mercury_fim_completion": {"prompt": "a", "suffix": "b"},
            "mercury_edit_completion": {"prompt": "<|code_to_edit|>a<|/code_to_edit|>"},
            "mercury_list_models": {},
        }
        errors = [await client.error(tool, arguments) for tool, arguments in calls.items()]

    assert {tool["name"] for tool in tools} >= set(calls)
    for error in errors:
        assert (error["type"], error["code"]) == ("auth_error", "MISSING_API_KEY")
        assert "MERCURY_API_KEY" in error["message"]
    assert not len(api.requests)


@pytest.mark.parametrize("status", [401, 402, 429])
async def test_a_key_that_is_refused_cools_down_for_the_next(
    api: Simulator, tmp_path: Path, status: int
) -> None:
    api.keys = {FIRST: Fault(status=status), SECOND: None}
    try:
        async with bridge_process(api.url, tmp_path, MERCURY_API_KEY=f"{FIRST}, {SECOND}") as client:
            for _ in range(2):
                assert "isError" not in await client.call(CHAT, ASK)
    finally:
        api.keys = None

    assert used(api) == [FIRST, SECOND, SECOND]


async def test_an_only_key_never_cools_down(api: Simulator, tmp_path: Path) -> None:
    api.faults.next(Fault(status=401))
    async with bridge_process(api.url, tmp_path) as client:
        assert (await client.error(CHAT, ASK))["type"] == "auth_error"
        assert "isError" not in await client.call(CHAT, ASK)

    assert used(api) == [KEY, KEY]


async def test_when_every_key_is_refused_each_was_tried_once(api: Simulator, tmp_path: Path) -> None:
    api.faults.always(Fault(status=401))
    async with bridge_process(api.url, tmp_path, MERCURY_API_KEY=f"{FIRST},{SECOND},{THIRD}") as client:
        error = await client.error(CHAT, ASK)

    assert error["code"] == "INVALID_API_KEY"
    assert used(api) == [FIRST, SECOND, THIRD]


async def test_a_key_file_is_read_again_when_it_changes(api: Simulator, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{FIRST}\n", encoding="utf-8-sig")  # as Notepad may save it
    settings = {"MERCURY_API_KEY": "", "MERCURY_API_KEY_FILE": str(file)}
    async with bridge_process(api.url, tmp_path, **settings) as client:
        await client.call(CHAT, ASK)
        file.write_text(f"{SECOND}-new\n")
        await client.call(CHAT, ASK)
        file.write_text("not a key\n")
        await client.call(CHAT, ASK)
        file.unlink()
        await client.call(CHAT, ASK)

    assert used(api) == [FIRST, *[f"{SECOND}-new"] * 3]
    assert any(line["event"] == "key file not usable" for line in client.log())


async def test_a_key_file_that_is_not_there_yet_is_waited_for(api: Simulator, tmp_path: Path) -> None:
    file = tmp_path / "key"
    settings = {"MERCURY_API_KEY": "", "MERCURY_API_KEY_FILE": str(file)}
    async with bridge_process(api.url, tmp_path, **settings) as client:
        error = await client.error(CHAT, ASK)
        file.write_text(FIRST)
        result = await client.call(CHAT, ASK)

    assert str(file) in error["message"]
    assert "isError" not in result


async def test_no_key_is_shown_anywhere(api: Simulator, tmp_path: Path) -> None:
    """The API itself repeats the key in its errors, which is the worst that it can do."""
    keys = f"{FIRST},{SECOND}"
    settings = {"MERCURY_API_KEY": keys, "LOG_LEVEL": "debug", "LOG_CONTENT": "1", "MERCURY_BUDGET_USD": "5"}
    said = f"{FIRST} and {SECOND} are wrong"
    for kind in ("garbage", "error", "cut", "drop"):
        api.faults.next(NAMED[kind])
    for status in (400, 401, 402, 404, 429, 500, 503):
        api.faults.next(Fault(status=status, message=said, retry_after_ms="1"))
    seen = b""
    async with bridge_process(api.url, tmp_path, **settings) as client:
        for tool in (CHAT, "mercury_chat_stream") * 10:
            await client.call(tool, {**ASK, "max_tokens": 50})
        await client.call("mercury_usage")
        await client.request("resources/read", {"uri": "mercury://models"})
        await client.call(CHAT, {"messages": 1})
        seen += read_title(client.process.pid)
    seen += b"".join(client.said)
    for file in tmp_path.rglob("*"):
        seen += file.read_bytes() if file.is_file() else b""

    assert b"are wrong" in seen
    assert len(seen) > 10_000
    assert not any(key.encode() in seen for key in (FIRST, SECOND))


@pytest.mark.parametrize("key", ["with a space in it", 'with"quotes"', "sk_...", "käsekäse"])
async def test_a_key_of_a_wrong_form_ends_the_start_without_showing_it(tmp_path: Path, key: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bridgehead",
        "mercury",
        env=environment("http://127.0.0.1:9/v1", tmp_path, MERCURY_API_KEY=key),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE)

    assert (process.returncode, out) == (2, b"")
    assert b"MERCURY_API_KEY" in err
    assert key.encode() not in err
    assert err.count(b"\n") == 1


@pytest.mark.parametrize("key", ["EMPTY", "ollama", "sk-1234"])
async def test_a_short_key_is_used_with_a_warning(api: Simulator, tmp_path: Path, key: str) -> None:
    api.faults.next(Fault(status=401, message=f"Incorrect API key provided: {key}"))
    async with bridge_process(api.url, tmp_path, MERCURY_API_KEY=key) as client:
        refused = await client.error(CHAT, ASK)
        answered = await client.call(CHAT, {"messages": [{"role": "user", "content": f"Say {key}"}]})

    assert "provided: ***" in refused["message"]
    assert key in answered["content"][0]["text"]
    assert used(api) == [key, key]
    (warning,) = [line for line in client.log() if line["event"].startswith("short API key")]
    assert key not in str(warning)


async def test_the_first_key_that_is_usable_is_picked_or_else_the_one_that_is_soonest(tmp_path: Path) -> None:
    clock = Clock(1000.0)
    given = environment("http://127.0.0.1:9", tmp_path) | {"MERCURY_API_KEY": f"{FIRST},{SECOND},{THIRD}"}
    keys = Keys(MercurySettings(given), clock)
    picked = [keys.pick()]
    for key, seconds in ((FIRST, 30.0), (SECOND, 10.0), (THIRD, 20.0)):
        keys.cool_down(key, 429, seconds)
        picked.append(keys.pick())
    clock.advance(25.0)
    picked.append(keys.pick())
    clock.advance(25.0)
    picked.append(keys.pick())

    # In their order while one is usable: when each has cooled down, it is the first one's turn again.
    assert picked == [FIRST, SECOND, THIRD, SECOND, SECOND, FIRST]
