"""Multi-round requests: a handler that asks is begun again with the answers, and with its own alone."""

from typing import Any

from bridgehead.mcp import Bridge, Context, NoArguments
from bridgehead.mcp.revisions import V2025_11_25
from tests.mcp.calls.two_rounds import BLUE, bridge, refused, second_round, stateless
from tests.support.asking import ALL, Person
from tests.support.checked import STATELESS, connect


async def test_in_the_stateless_era_only_what_is_not_answered_yet_is_asked_again() -> None:
    async with stateless() as client:
        first = await client.call("everything")
        assert list(first["inputRequests"]) == ["a", "b", "c"]
        one = {"a": {"action": "accept", "content": {"color": "blue"}}}
        second = await client.call("everything", inputResponses=one, requestState=first["requestState"])

        assert second["resultType"] == "input_required"
        assert list(second["inputRequests"]) == ["b", "c"]


async def test_answers_that_come_without_a_state_count_too() -> None:
    async with stateless() as client:
        text = await client.text("wish", inputResponses={"elicitation": {"action": "decline"}, "unasked": 5})

    assert text == "decline"


async def test_a_tool_that_destroys_takes_no_answers_to_what_was_not_asked() -> None:
    bridge: Bridge[Any] = Bridge("shredder", "1.0.0")

    @bridge.tool("Shred.", destructive=True)
    async def shred(args: NoArguments, ctx: Context[Any]) -> str:
        return (await ctx.elicit("Sure?", {"type": "object", "properties": {}})).action

    async with connect(bridge, revision=STATELESS, capabilities=ALL) as client:
        made_up = {"elicitation": {"action": "accept", "content": {}}}
        asked = await client.call("shred", inputResponses=made_up)
        assert asked["resultType"] == "input_required"
        answered = {"inputResponses": made_up, "requestState": asked["requestState"]}
        assert await client.text("shred", **answered) == "accept"


async def test_answers_mean_nothing_after_a_handshake() -> None:
    person = Person()
    async with connect(bridge, revision=V2025_11_25, capabilities=ALL, answering=person) as client:
        await client.text(
            "wish", inputResponses={"elicitation": {"action": "decline"}}, requestState="forged"
        )

    assert len(person.asked) == 1


async def test_answers_of_earlier_rounds_come_back_with_the_state() -> None:
    async with stateless() as client:
        state = await second_round(client)
        third = await client.call("rounds", inputResponses={"two": BLUE}, requestState=state)
        text = await client.text(
            "rounds", inputResponses={"three": {"roots": []}}, requestState=third["requestState"]
        )

    assert list(third["inputRequests"]) == ["three"]
    assert text == "you: red blue 0"


async def test_a_state_without_new_answers_asks_the_same_again() -> None:
    async with stateless() as client:
        again = await client.call("rounds", requestState=await second_round(client))

    assert list(again["inputRequests"]) == ["two"]


async def test_consent_is_given_once() -> None:
    async with stateless() as client:
        state = await second_round(client)
        answered = {"name": "rounds", "inputResponses": {"two": BLUE}, "requestState": state}
        await client.answer_to("tools/call", answered)
        assert "answered already" in await refused(client, state)
