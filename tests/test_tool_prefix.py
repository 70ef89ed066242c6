"""A prefix for tools: with one, a client of any bridge reads no other names; without one, nothing changes.

Checked is what the bridges say about their tools. What a tool returns is content, and may hold any word.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bridgehead.mcp import NEWEST_HANDSHAKE, Revision
from bridgehead.mcp.revisions import V2025_06_18, V2026_07_28
from bridgehead.runtime import plugins
from bridgehead.runtime.manifest import make_bridge
from bridgehead.runtime.settings import SettingError
from tests.support.checked import connect
from tests.support.said import APPS, BRIDGES, PUZZLE, gather, make_environment

PREFIX = "my_"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return make_environment(tmp_path)


def names(bridge: str, environment: Mapping[str, str]) -> list[str]:
    return list(make_bridge(plugins.load(bridge), environment).tools)


def find_bare(bridge: str, environment: Mapping[str, str], said: Any) -> list[str]:
    """Return the declared names that stand in what a client got, without their prefix."""
    declared = "|".join(names(bridge, environment))
    return sorted(set(re.findall(rf"(?<!\w)(?:{declared})(?!\w)", msgspec.json.encode(said).decode())))


@pytest.mark.parametrize("revision", [V2025_06_18, NEWEST_HANDSHAKE, V2026_07_28], ids=lambda one: one.name)
@pytest.mark.parametrize("bridge", BRIDGES)
async def test_a_client_reads_no_name_without_the_prefix(
    environment: dict[str, str], bridge: str, revision: Revision
) -> None:
    declared = names(bridge, environment)
    served = make_bridge(plugins.load(bridge), {**environment, f"{bridge.upper()}_TOOL_PREFIX": PREFIX})
    async with connect(served, revision=revision, capabilities=APPS) as client:
        said = await gather(client, [PREFIX + name for name in declared])
        if revision.stateless:
            said.append(await client.request("server/discover"))

    assert list(served.tools) == [PREFIX + name for name in declared]
    assert find_bare(bridge, environment, said) == []
    # The check sees something: the same texts name most tools.
    assert len(set(re.findall(rf"\b{PREFIX}\w+", str(said)))) >= len(declared)


async def test_a_call_by_the_prefixed_name_returns_the_content_as_it_is(environment: dict[str, str]) -> None:
    served = make_bridge(plugins.load("aoc"), {**environment, "AOC_TOOL_PREFIX": PREFIX})
    async with connect(served) as client:
        text = await client.text("my_fetch_instruction", {"day": 1})

    assert PUZZLE.strip() in text


@pytest.mark.parametrize("bridge", BRIDGES)
async def test_without_a_prefix_the_same_texts_name_the_tools_as_declared(
    environment: dict[str, str], bridge: str
) -> None:
    declared = names(bridge, environment)
    with_prefix = make_bridge(plugins.load(bridge), {**environment, f"{bridge.upper()}_TOOL_PREFIX": PREFIX})
    async with connect(make_bridge(plugins.load(bridge), environment), capabilities=APPS) as client:
        plain = await client.request("tools/list"), await client.request("prompts/list"), client.sent[0]
    async with connect(with_prefix, capabilities=APPS) as client:
        other = await client.request("tools/list"), await client.request("prompts/list"), client.sent[0]

    assert find_bare(bridge, environment, plain) == sorted(declared)
    # Nothing but the prefix differs.
    assert msgspec.json.encode(other).decode().replace(PREFIX, "") == msgspec.json.encode(plain).decode()


@pytest.mark.parametrize("bridge", BRIDGES)
def test_a_prefix_that_is_not_set_makes_no_other_bridge(environment: dict[str, str], bridge: str) -> None:
    served = make_bridge(plugins.load(bridge), environment)

    assert served.bridges == (served,)


@pytest.mark.parametrize("bridge", BRIDGES)
@pytest.mark.parametrize("prefix", ["1st_", "-", "two words", "a/b", "é_", "x" * 33])
def test_a_prefix_that_cannot_work_is_refused(environment: dict[str, str], bridge: str, prefix: str) -> None:
    variable = f"{bridge.upper()}_TOOL_PREFIX"
    with pytest.raises(SettingError, match=f"{variable} is .* expected up to 32 letters, digits, _ and -"):
        make_bridge(plugins.load(bridge), {**environment, variable: prefix})


@pytest.mark.parametrize("bridge", BRIDGES)
def test_the_longest_prefix_fits_before_each_of_our_tools(environment: dict[str, str], bridge: str) -> None:
    settings = {**environment, f"{bridge.upper()}_TOOL_PREFIX": "x" * 32}

    assert max(map(len, names(bridge, settings))) <= 64


@pytest.mark.parametrize("denied", ["delete_file", "game_delete_file", "game_d*"])
def test_a_list_of_tools_takes_names_with_and_without_the_prefix(
    environment: dict[str, str], denied: str
) -> None:
    settings = {**environment, "BITBURNER_TOOL_PREFIX": "game_", "BRIDGEHEAD_DENY_TOOLS": denied}
    served = make_bridge(plugins.load("bitburner"), settings)

    assert "game_read_file" in served.tools
    assert "game_delete_file" not in served.tools


def test_toolsets_keep_their_names(environment: dict[str, str]) -> None:
    settings = {**environment, "BITBURNER_TOOL_PREFIX": "game_", "BITBURNER_TOOLSETS": "servers"}
    served = make_bridge(plugins.load("bitburner"), settings)

    assert "game_list_servers" in served.tools
    assert "game_edit_file" not in served.tools
