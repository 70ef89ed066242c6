"""The official Python client against the interop server: owns the checks that `make test` runs."""

import asyncio
import json
from collections.abc import Iterator

import mcp_types as types
import pytest
from mcp import MCPError
from mcp.client import ClientRequestContext
from mcp.shared.dispatcher import ProgressFnT
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from tests.interop.python_peer import SERVER, WAYS, Peer, Way, connected
from tests.interop.server_process import serving

TOOLS = {"add", "ask_name", "cancellations", "echo", "revision", "slow_count"}
STRUCTURED_SINCE = "2025-06-18"
ELICITATION_SINCE = "2025-06-18"

# A client that goes straight to a revision never asks the server who it is.
INTRODUCED = pytest.mark.parametrize("way", [w for w in WAYS if w.mode != "2026-07-28"], ids=str)
ALL = pytest.mark.parametrize("way", WAYS, ids=str)
# Over stdio each test starts a server, and an older revision, once agreed, is the same as over HTTP.
MOST = pytest.mark.parametrize(
    "way", [w for w in WAYS if w.transport != "stdio" or w.revision >= LATEST_HANDSHAKE_VERSION], ids=str
)
ASKING = pytest.mark.parametrize("way", [w for w in WAYS if w.revision >= ELICITATION_SINCE], ids=str)
BEFORE_ASKING = pytest.mark.parametrize("way", [w for w in WAYS if w.revision < ELICITATION_SINCE], ids=str)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(SERVER, "--http") as address:
        yield address


@ALL
async def test_the_client_and_the_server_agree_on_the_revision(way: Way, address: str) -> None:
    async with connected(way, address) as peer:
        assert peer.protocol_version == way.revision
        assert text(await peer.call_tool("revision")) == way.revision


@INTRODUCED
async def test_the_server_says_who_it_is_and_what_it_offers(way: Way, address: str) -> None:
    async with connected(way, address) as peer:
        info, capabilities = peer.server_info, peer.server_capabilities
        assert peer.instructions == "Adds numbers, counts slowly and greets people."
    assert info is not None
    assert (info.name, info.version) == ("interop", "1.0.0")
    assert capabilities is not None
    assert capabilities.tools is not None
    assert capabilities.prompts is not None
    assert capabilities.resources is not None


@MOST
async def test_every_tool_is_listed_with_a_schema_for_its_arguments(way: Way, address: str) -> None:
    async with connected(way, address) as peer:
        tools = {tool.name: tool for tool in (await peer.list_tools()).tools}
    assert set(tools) == TOOLS
    assert all(tool.description for tool in tools.values())
    assert set(tools["add"].input_schema["properties"]) == {"a", "b"}
    assert set(tools["add"].input_schema["required"]) == {"a", "b"}
    if way.revision >= STRUCTURED_SINCE:
        assert tools["add"].output_schema is not None
        assert tools["add"].output_schema["properties"]["sum"]["type"] == "integer"


@MOST
async def test_a_tool_answers_with_structured_output_and_with_the_same_as_text(
    way: Way, address: str
) -> None:
    async with connected(way, address) as peer:
        result = await peer.call_tool("add", {"a": 2, "b": 3})
    assert not result.is_error
    assert "".join(text(result).split()) == '{"sum":5}'
    if way.revision >= STRUCTURED_SINCE:
        assert result.structured_content == {"sum": 5}


@MOST
async def test_text_comes_back_as_it_was_sent(way: Way, address: str) -> None:
    said = 'tabs\t"quotes" \u2028 and \U0001f309\nlines'
    async with connected(way, address) as peer:
        assert text(await peer.call_tool("echo", {"text": said})) == said


@MOST
async def test_wrong_arguments_are_an_error_the_model_can_read(way: Way, address: str) -> None:
    async with connected(way, address) as peer:
        result = await peer.call_tool("add", {"a": 2, "b": "three"})
    assert result.is_error
    assert "b" in text(result)


@MOST
async def test_an_unknown_tool_is_refused_with_invalid_params(way: Way, address: str) -> None:
    async with connected(way, address) as peer:
        with pytest.raises(MCPError) as refusal:
            await peer.call_tool("no_such_tool", {})
    assert refusal.value.code == types.INVALID_PARAMS
    assert "no_such_tool" in refusal.value.message


@MOST
async def test_a_resource_is_listed_and_read(way: Way, address: str) -> None:
    async with connected(way, address) as peer:
        listed = [str(resource.uri) for resource in (await peer.list_resources()).resources]
        result = await peer.read_resource("interop://motto")
    assert listed == ["interop://motto"]
    assert content(result) == ("interop://motto", "text/plain", "Meet in the middle.")


@MOST
async def test_a_template_is_listed_and_read_with_its_variable(way: Way, address: str) -> None:
    async with connected(way, address) as peer:
        listed = [
            template.uri_template for template in (await peer.list_resource_templates()).resource_templates
        ]
        result = await peer.read_resource("interop://cities/Lyon")
    assert listed == ["interop://cities/{city}"]
    assert content(result) == ("interop://cities/Lyon", "text/plain", "Lyon is a city.")


@MOST
async def test_an_unknown_resource_is_refused(way: Way, address: str) -> None:
    async with connected(way, address) as peer:
        with pytest.raises(MCPError) as refusal:
            await peer.read_resource("interop://nowhere")
    handshake_code = -32002
    expected = handshake_code if way.revision < "2026-07-28" else types.INVALID_PARAMS
    assert refusal.value.code == expected


@MOST
async def test_a_prompt_is_listed_and_filled_in(way: Way, address: str) -> None:
    async with connected(way, address) as peer:
        (prompt,) = (await peer.list_prompts()).prompts
        filled = await peer.get_prompt("plan_day", {"city": "Paris"})
    assert prompt.name == "plan_day"
    assert [(argument.name, argument.required) for argument in prompt.arguments or []] == [("city", True)]
    (message,) = filled.messages
    assert message.role == "user"
    assert isinstance(message.content, types.TextContent)
    assert message.content.text == "Plan a day in Paris."


@MOST
async def test_the_argument_of_a_prompt_and_of_a_template_is_completed(way: Way, address: str) -> None:
    prompt = types.PromptReference(type="ref/prompt", name="plan_day")
    template = types.ResourceTemplateReference(type="ref/resource", uri="interop://cities/{city}")
    async with connected(way, address) as peer:
        of_prompt = await peer.complete(prompt, {"name": "city", "value": "Li"})
        of_template = await peer.complete(template, {"name": "city", "value": "Ly"})
    assert of_prompt.completion.values == ["Lisbon", "Liverpool"]
    assert of_template.completion.values == ["Lyon"]


@MOST
async def test_progress_arrives_in_order_and_before_the_result(way: Way, address: str) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with connected(way, address) as peer:
        result = await peer.call_tool("slow_count", {"n": 3}, progress_callback=note)
        assert [step[:2] for step in seen] == [(1, 3), (2, 3), (3, 3)]
    assert "".join(text(result).split()) == '{"counted":3}'
    if way.revision >= "2025-03-26":
        assert [step[2] for step in seen] == ["step 1 of 3", "step 2 of 3", "step 3 of 3"]


@MOST
async def test_a_call_that_the_client_cancels_ends_on_the_server(way: Way, address: str) -> None:
    started = asyncio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        started.set()

    async with connected(way, address) as peer:
        before = await cancellations(peer)
        call = asyncio.create_task(count_to(peer, 1000, note))
        await asyncio.wait_for(started.wait(), 10)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await cancellations_after(peer, before) == before + 1


@ASKING
async def test_a_tool_asks_the_user_and_uses_the_answer(way: Way, address: str) -> None:
    asked: list[str] = []

    async def answer(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async with connected(way, address, elicit=answer) as peer:
        result = await peer.call_tool("ask_name")
    assert text(result) == "Hello, Ada!"
    assert asked == ["What is your name?"]


@ASKING
async def test_a_tool_hears_that_the_user_declined(way: Way, address: str) -> None:
    async def decline(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="decline")

    async with connected(way, address, elicit=decline) as peer:
        result = await peer.call_tool("ask_name")
    assert result.is_error
    assert text(result) == "The user gave no name."


@BEFORE_ASKING
async def test_a_revision_without_elicitation_is_never_asked(way: Way, address: str) -> None:
    async def answer(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        raise AssertionError(f"the server asked: {params.message}")

    async with connected(way, address, elicit=answer) as peer:
        result = await peer.call_tool("ask_name")
    assert result.is_error
    assert text(result)


def text(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


def content(result: types.ReadResourceResult) -> tuple[str, str | None, str]:
    (only,) = result.contents
    assert isinstance(only, types.TextResourceContents)
    return str(only.uri), only.mime_type, only.text


async def cancellations(peer: Peer) -> int:
    result = await peer.call_tool("cancellations")
    return int(json.loads(text(result))["count"])


async def cancellations_after(peer: Peer, before: int) -> int:
    """How many there are once there is one more, or after the ten seconds that it may take."""
    for _ in range(200):
        if (now := await cancellations(peer)) != before:
            return now
        await asyncio.sleep(0.05)
    return before


async def count_to(peer: Peer, n: int, note: ProgressFnT) -> None:
    await peer.call_tool("slow_count", {"n": n}, progress_callback=note)
