"""Completions, at most a hundred at once; and how a large result is answered."""

import asyncio
from typing import Any

import pytest

from bridgehead.mcp import Arguments, Bridge, Context, in_memory
from bridgehead.mcp.revisions import REVISIONS, Revision
from tests.support.checked import CheckedClient, connect

NUMBERS = [str(number) for number in range(250)]
TEMPLATE = "c://{kind}/{name}"


class Pick(Arguments):
    number: str
    other: str = ""


bridge: Bridge[None] = Bridge("completions", "1")


@bridge.prompt("Pick a number.")
def pick(args: Pick, ctx: Context[None]) -> str:
    return args.number


@bridge.template(TEMPLATE, name="thing")
def thing(variables: dict[str, str], ctx: Context[None]) -> str:
    return variables["name"]


@bridge.complete_prompt("pick", "number")
def complete_number(value: str, given: dict[str, str], ctx: Context[None]) -> list[str]:
    return [number for number in NUMBERS if number.startswith(value)]


@bridge.complete_template(TEMPLATE, "name")
async def complete_name(value: str, given: dict[str, str], ctx: Context[None]) -> list[str]:
    return [f"{given.get('kind', 'any')}-{value}"]


PROMPT = {"type": "ref/prompt", "name": "pick"}
RESOURCE = {"type": "ref/resource", "uri": TEMPLATE}


async def completed(client: CheckedClient, ref: Any, name: str, value: str, **params: Any) -> Any:
    argument = {"name": name, "value": value}
    return (await client.request("completion/complete", {"ref": ref, "argument": argument, **params}))[
        "completion"
    ]


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=str)
async def test_an_argument_is_completed_in_every_revision(revision: Revision) -> None:
    async with connect(bridge, revision=revision) as client:
        completion = await completed(client, PROMPT, "number", "24")

    assert completion == {
        "values": ["24", *(str(n) for n in range(240, 250))],
        "total": 11,
        "hasMore": False,
    }


@pytest.mark.parametrize(("value", "total"), [("", 250), ("1", 111), ("2", 61)])
async def test_no_more_than_a_hundred_values_are_given_with_how_many_there_are(
    value: str, total: int
) -> None:
    async with connect(bridge) as client:
        completion = await completed(client, PROMPT, "number", value)

    assert len(completion["values"]) == min(total, 100)
    assert (completion["total"], completion["hasMore"]) == (total, total > 100)


async def test_exactly_a_hundred_values_leave_no_more() -> None:
    exact: Bridge[None] = Bridge("exact", "1")
    exact.prompt("Pick a number.")(pick)

    @exact.complete_prompt("pick", "number")
    def hundred(value: str, given: dict[str, str], ctx: Context[None]) -> list[str]:
        return NUMBERS[:100]

    async with connect(exact) as client:
        completion = await completed(client, PROMPT, "number", "")

    assert (len(completion["values"]), completion["total"], completion["hasMore"]) == (100, 100, False)


async def test_a_variable_is_completed_knowing_the_other_ones() -> None:
    async with connect(bridge) as client:
        alone = await completed(client, RESOURCE, "name", "x")
        knowing = await completed(client, RESOURCE, "name", "x", context={"arguments": {"kind": "cat"}})

    assert (alone["values"], knowing["values"]) == (["any-x"], ["cat-x"])


@pytest.mark.parametrize(("ref", "name"), [(PROMPT, "other"), (RESOURCE, "kind")])
async def test_an_argument_without_a_completer_has_no_completions(ref: Any, name: str) -> None:
    async with connect(bridge) as client:
        assert await completed(client, ref, name, "x") == {"values": [], "total": 0, "hasMore": False}


@pytest.mark.parametrize(
    "ref",
    [
        {"type": "ref/prompt", "name": "unknown"},
        {"type": "ref/prompt"},
        {"type": "ref/resource"},
        {"type": "ref/tool", "name": "pick"},
    ],
)
async def test_there_is_nothing_to_complete_for_what_is_not_there(ref: Any) -> None:
    async with connect(bridge) as client:
        params = {"ref": ref, "argument": {"name": "number", "value": ""}}

        assert (await client.error("completion/complete", params))["code"] == -32602


def test_a_completer_cannot_be_declared_twice() -> None:
    with pytest.raises(ValueError, match="declared twice"):
        bridge.complete_prompt("pick", "number")(complete_number)


async def test_others_get_their_turn_between_encoding_a_large_result_and_answering_with_it() -> None:
    bridge: Bridge[None] = Bridge("large", "1")
    order: list[str] = []

    @bridge.tool
    async def much() -> str:
        """Answer with much, while somebody else is ready."""
        asyncio.get_running_loop().call_soon(order.append, "somebody else")
        return "x" * 2_000_000

    async with in_memory.connect(bridge) as client:
        await client.call("much")
        order.append("the answer")

    assert order == ["somebody else", "the answer"]
