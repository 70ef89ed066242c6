"""Views: what of the bridges a caller sees, and that there is nothing else for it."""

from pathlib import Path
from typing import Any

import pytest

from bridgehead.runtime.settings import SettingError
from tests.support.host_bridges import StandIns
from tests.support.host_server import Host, bearer, hosting
from tests.support.http_client import Headers
from tests.support.http_server import mirrored
from tests.support.messages import call, stateless, text

ALPHA = ["alpha_echo", "alpha_later", "alpha_either", "alpha_soon", "alpha_write", "alpha_wait", "alpha_bug"]
BETA = [name.replace("alpha", "beta") for name in ALPHA]


async def test_each_bridge_has_its_url_and_all_of_them_share_one(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        assert await host.tools("/alpha/mcp") == ALPHA
        assert await host.tools("/beta/mcp") == BETA
        assert await host.tools("/mcp") == ALPHA + BETA


async def test_the_shared_url_is_bridgehead_and_a_bridges_own_is_the_bridge(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        shared = await host.ask("/mcp", "server/discover")
        own = await host.ask("/alpha/mcp", "server/discover")

    info = "io.modelcontextprotocol/serverInfo"
    assert shared["_meta"][info]["name"] == "bridgehead"
    assert own["_meta"][info]["name"] == "alpha"
    assert "I am alpha." in shared["instructions"]
    assert "I am beta." in shared["instructions"]


async def test_all_urls_share_one_running_bridge(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        for path in ("/mcp", "/alpha/mcp", "/mcp"):
            await host.ask(path, "tools/call", call("alpha_echo", {"text": "x"}))

        assert (host.far["alpha"].begun, len(host.far["alpha"].visitors)) == (1, 3)


async def test_the_name_of_a_token_reaches_the_tools(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens={"alice": {}}) as host:
        await host.ask("/mcp", "tools/call", call("alpha_echo", {"text": "x"}), bearer(host.secrets["alice"]))

        assert host.far["alpha"].visitors == ["alice"]


@pytest.mark.parametrize("path", ["/mcp", "/alpha/mcp"])
async def test_a_token_for_one_bridge_sees_nothing_of_another(tmp_path: Path, path: str) -> None:
    async with hosting(tmp_path, tokens={"one": {"bridges": ("alpha",)}}) as host:
        token = bearer(host.secrets["one"])
        found = await host.ask(path, "server/discover", headers=token)
        resources = await host.ask(path, "resources/list", headers=token)
        prompts = await host.ask(path, "prompts/list", headers=token)

        assert await host.tools(path, token) == ALPHA
        assert [one["uri"] for one in resources["resources"]] == ["alpha://note"]
        assert [one["name"] for one in prompts["prompts"]] == ["alpha_greet"]
        assert "beta" not in str((found, resources, prompts))


async def test_a_token_for_one_bridge_cannot_call_or_read_of_another(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens={"one": {"bridges": ("alpha",)}}) as host:
        token = bearer(host.secrets["one"])
        called = await (await host.try_call("/mcp", "beta_echo", token)).json()
        message = stateless("resources/read", {"uri": "beta://note"})
        read = await (await host.post("/mcp", message, {**mirrored(message), **token})).json()
        own = await host.refused(await host.try_call("/beta/mcp", "beta_echo", token), 403)

        assert called["error"]["message"] == "Unknown tool: beta_echo"
        assert called["error"]["data"]["tools"] == ALPHA
        assert read["error"]["code"] == -32602
        assert own == "This token does not open beta"
        assert host.far["beta"].visitors == []


async def test_a_token_for_one_bridge_does_not_hear_of_changes_in_another(tmp_path: Path) -> None:
    tokens = {"one": {"bridges": ("alpha",)}, "all": {}}
    async with hosting(tmp_path, tokens=tokens) as host:
        everything = bearer(host.secrets["all"])
        listen = stateless(
            "subscriptions/listen",
            {"notifications": {"resourceSubscriptions": ["alpha://note", "beta://note"]}},
        )
        stream = await host.post("/mcp", listen, {**mirrored(listen), **bearer(host.secrets["one"])})
        await stream.message()

        for name in ("beta", "alpha"):
            await host.ask("/mcp", "tools/call", call(f"{name}_write", {"text": "x"}), everything)
        heard = await stream.message()

        assert heard["params"]["uri"] == "alpha://note"


async def test_a_session_belongs_to_its_token(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens={"alice": {}, "bob": {}}) as host:
        session = await host.session("/mcp", bearer(host.secrets["alice"]))
        stolen: Headers = {**session, **bearer(host.secrets["bob"])}

        mine = await host.in_session("/mcp", session, "tools/list")
        response = await host.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, stolen)

        assert len(mine["result"]["tools"]) == 14
        assert response.status == 404


async def test_a_read_only_token_is_offered_what_only_reads(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens={"reader": {"read_only": True}}) as host:
        token = bearer(host.secrets["reader"])
        refused = await (await host.try_call("/alpha/mcp", "alpha_write", token)).json()

        assert "alpha_write" not in await host.tools("/alpha/mcp", token)
        assert refused["error"]["message"] == (
            "Unknown tool: alpha_write. This token is read-only. "
            "Ask the server's operator for one that may write."
        )


@pytest.mark.parametrize(
    ("settings", "offered"),
    [
        (
            {"BRIDGEHEAD_READ_ONLY": "1"},
            ["alpha_echo", "alpha_later", "alpha_either", "alpha_soon", "alpha_wait", "alpha_bug"],
        ),
        ({"BRIDGEHEAD_ALLOW_TOOLS": "*_echo,alpha_w*"}, ["alpha_echo", "alpha_write", "alpha_wait"]),
        ({"BRIDGEHEAD_ALLOW_TOOLS": "alpha_*", "BRIDGEHEAD_DENY_TOOLS": "*_w*,*bug"}, ALPHA[:4]),
    ],
)
async def test_settings_say_which_tools_there_are_at_all(
    tmp_path: Path, settings: dict[str, str], offered: list[str]
) -> None:
    async with hosting(tmp_path, settings) as host:
        assert await host.tools("/alpha/mcp") == offered
        assert [name for name in await host.tools("/mcp") if name.startswith("alpha")] == offered


async def test_both_eras_are_served_at_every_url(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        for path in ("/mcp", "/beta/mcp"):
            session = await host.session(path)
            answer = await host.in_session(path, session, "tools/call", call("beta_later", {"text": "hi"}))
            assert text(answer) == "hi"


async def test_clients_of_the_first_revision_find_their_streams(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        for prefix in ("", "/alpha"):
            stream = await host.get(f"{prefix}/sse", {"Accept": "text/event-stream"})
            first = await stream.event()
            assert first is not None
            assert first.fields["data"].startswith(f"{prefix}/messages?session_id=")
            posted = await host.post(first.fields["data"], {"jsonrpc": "2.0", "id": 1, "method": "ping"})
            assert posted.status == 202
            assert (await stream.message())["result"] == {}


async def _calls(host: Host, name: str) -> list[bool]:
    found = await host.ask("/mcp", "tools/call", call(f"{name}_echo", {"text": "x"}))
    return [bool(found.get("isError"))]


async def test_a_far_side_that_goes_leaves_the_others_alone(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        host.far["alpha"].is_there = False
        assert (await _calls(host, "alpha"), await _calls(host, "beta")) == ([True], [False])

        host.far["alpha"].is_there = True
        assert (await _calls(host, "alpha"), await _calls(host, "beta")) == ([False], [False])


@pytest.mark.parametrize(
    ("rights", "may_buy"),
    [
        ({"read_only": True}, False),
        ({"read_only": True, "may_spend": True}, True),
        ({}, True),
    ],
)
@pytest.mark.parametrize("path", ["/mcp", "/alpha/mcp"])
async def test_a_token_that_only_reads_spends_nothing_unless_it_may(
    tmp_path: Path, path: str, rights: dict[str, Any], *, may_buy: bool
) -> None:
    stand_ins = StandIns("alpha", "beta")
    stand_ins.paid = {"alpha"}
    async with hosting(tmp_path, tokens={"ann": rights}, stand_ins=stand_ins) as host:
        token = bearer(host.secrets["ann"])
        assert "alpha_buy" in await host.tools(path, token)
        bought = await (await host.try_call(path, "alpha_buy", token)).json()

    assert bought["result"].get("isError", False) is not may_buy
    assert ("--may-spend" in bought["result"]["content"][0]["text"]) is not may_buy


async def test_a_bridge_has_its_prefix_at_its_url_and_at_the_shared_one(tmp_path: Path) -> None:
    async with hosting(tmp_path, {"STAND_IN_TOOL_PREFIX": "my_"}) as host:
        assert await host.tools("/alpha/mcp") == [f"my_{name}" for name in ALPHA]
        assert await host.tools("/mcp") == [f"my_{name}" for name in ALPHA + BETA]
        called = await host.ask("/mcp", "tools/call", call("my_beta_echo", {"text": "beta_echo"}))

        assert called["content"][0]["text"] == "beta_echo"
        # Operators read the declared name, whatever clients call the tool.
        metrics = (await (await host.get("/metrics")).body()).decode()
        assert 'tool="beta_echo"' in metrics
        assert "my_beta_echo" not in metrics


async def test_the_shared_url_has_a_prefix_of_its_own_instead(tmp_path: Path) -> None:
    settings = {"STAND_IN_TOOL_PREFIX": "my_", "BRIDGEHEAD_TOOL_PREFIX": "all-"}
    async with hosting(tmp_path, settings) as host:
        assert await host.tools("/alpha/mcp") == [f"my_{name}" for name in ALPHA]
        assert await host.tools("/mcp") == [f"all-{name}" for name in ALPHA + BETA]
        called = await host.ask("/mcp", "tools/call", call("all-beta_echo", {"text": "x"}))

        assert called["content"][0]["text"] == "x"


@pytest.mark.parametrize("denied", ["alpha_write", "my_alpha_write", "all_alpha_write", "my_alpha_w*"])
async def test_a_denied_tool_is_denied_under_each_of_its_names(tmp_path: Path, denied: str) -> None:
    settings = {"STAND_IN_TOOL_PREFIX": "my_", "BRIDGEHEAD_TOOL_PREFIX": "all_"}
    async with hosting(tmp_path, {**settings, "BRIDGEHEAD_DENY_TOOLS": denied}) as host:
        for path in ("/mcp", "/alpha/mcp"):
            offered = await host.tools(path)
            assert [name for name in offered if name.endswith("alpha_echo")]
            assert [name for name in offered if name.endswith("alpha_write")] == []


async def test_a_read_only_token_opens_and_is_refused_prefixed_tools(tmp_path: Path) -> None:
    stand_ins = StandIns("alpha")
    stand_ins.paid.add("alpha")
    tokens = {"reader": {"read_only": True}}
    async with hosting(tmp_path, {"STAND_IN_TOOL_PREFIX": "my_"}, stand_ins=stand_ins, tokens=tokens) as host:
        token = bearer(host.secrets["reader"])
        assert "my_alpha_write" not in await host.tools("/mcp", token)
        bought = await host.ask("/mcp", "tools/call", call("my_alpha_buy", {"text": "x"}), token)

        assert bought["isError"]
        assert "--may-spend" in bought["content"][0]["text"]


LONG = "a" * 40
"""A bridge whose tools have long names: the longest, with "_either" behind it, leaves 17 characters."""


async def test_a_bridge_whose_prefix_is_too_long_for_its_tools_is_not_served(tmp_path: Path) -> None:
    settings = {"STAND_IN_TOOL_PREFIX": "x" * 18}
    async with hosting(tmp_path, settings, stand_ins=StandIns(LONG, "beta")) as host:
        (refused,) = host.logged("a bridge cannot be served")

        assert refused["bridge"] == LONG
        assert f"STAND_IN_TOOL_PREFIX is '{'x' * 18}'" in refused["problem"]
        assert "Use a prefix of at most 17 characters." in refused["problem"]
        assert await host.tools("/mcp") == [f"{'x' * 18}{name}" for name in BETA]


async def test_a_prefix_of_the_shared_url_that_is_too_long_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"BRIDGEHEAD_TOOL_PREFIX is .* at most 17 characters"):
        async with hosting(tmp_path, {"BRIDGEHEAD_TOOL_PREFIX": "x" * 18}, stand_ins=StandIns(LONG)):
            pass
