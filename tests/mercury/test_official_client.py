"""The official Python client over stdio: every tool, an error, a stream, the prompts and the resource."""

import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.process import environment

pytestmark = pytest.mark.asyncio(loop_scope="module")

ASK = {"messages": [{"role": "user", "content": "Of clients, in 20 words"}]}
CALLS: dict[str, dict[str, Any]] = {
    "mercury_chat_completion": ASK,
    "mercury_chat_stream": ASK,
    "mercury_fim_completion": {"prompt": "def f(", "suffix": "return"},
    "mercury_edit_completion": {"prompt": "<|code_to_edit|>a<|/code_to_edit|>"},
    "mercury_apply_edit": {"original": "a = 1", "update": "a = 2"},
    "mercury_next_edit": {"content": "a = 1"},
    "mercury_list_models": {},
    "mercury_batch": {"prompts": ["a", "b"]},
    "mercury_usage": {},
}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client_can_use_everything(api: Simulator, tmp_path: Path, mode: Any) -> None:
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "bridgehead", "mercury"], env=environment(api.url, tmp_path)
    )
    told: list[str] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async with Client(stdio_client(server), mode=mode) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        results = {name: await client.call_tool(name, arguments) for name, arguments in CALLS.items()}
        api.faults.next(Fault(chunk_delay=0.01))
        await client.call_tool("mercury_chat_stream", ASK, progress_callback=on_progress)
        failed = await client.call_tool("mercury_chat_completion", {"messages": []})
        resource = await client.read_resource("mercury://models")
        prompt = await client.get_prompt("explain", {"subject": "it"})

    assert listed == {*CALLS, "mercury_decide"}  # for which the simulated API has no endpoint
    for name, result in results.items():
        assert isinstance(result, types.CallToolResult)
        assert not result.is_error, name
        assert result.structured_content, name
    assert "".join(told) == api.text_of({**ASK, "model": "mercury-2"})
    assert isinstance(failed, types.CallToolResult)
    assert failed.is_error
    assert resource.contents
    assert prompt.messages
