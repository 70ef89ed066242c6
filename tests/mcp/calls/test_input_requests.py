"""Questions to the client: the same tools in both eras, by request and by `input_required`."""

from contextlib import AbstractAsyncContextManager
from typing import Any, Literal

import pytest
from msgspec import Struct

from bridgehead.mcp import Arguments, Bridge, Context, NoArguments, ProtocolError
from bridgehead.mcp.revisions import V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, Revision
from tests.support.asking import ALL, Person, make_bridge, solve
from tests.support.checked import STATELESS, CheckedClient, connect

bridge = make_bridge()
BOTH = pytest.mark.parametrize("revision", [V2025_11_25, STATELESS], ids=str)


def open_to(
    person: Person, revision: Revision, capabilities: dict[str, Any] | None = None
) -> AbstractAsyncContextManager[CheckedClient]:
    return connect(
        bridge,
        revision=revision,
        capabilities=ALL if capabilities is None else capabilities,
        answering=person,
    )


async def solved(tool: str, person: Person, revision: Revision, **arguments: Any) -> Any:
    async with open_to(person, revision) as client:
        result = await solve(client, "tools/call", {"name": tool, "arguments": arguments}, person)
        assert not client.connection.in_flight
        assert not client.connection.asked
        assert client.connection.parked == 0
    return result


@BOTH
@pytest.mark.parametrize(
    ("tool", "text", "methods"),
    [
        ("wish", "1 red", ["elicitation/create"]),
        ("visit", "accept", ["elicitation/create"]),
        ("think", "m-1 assistant endTurn: thought", ["sampling/createMessage"]),
        ("think_hard", "thought", ["sampling/createMessage"]),
        ("roots", "file:///a a, file:///b None", ["roots/list"]),
        ("everything", "red thought 2", ["elicitation/create", "sampling/createMessage", "roots/list"]),
        ("nothing", "{}", []),
        ("together", "red 2", ["elicitation/create", "roots/list"]),
        ("rounds", "you: red red 2", ["elicitation/create", "elicitation/create", "roots/list"]),
    ],
)
async def test_a_tool_gets_its_answers_in_both_eras(
    revision: Revision, tool: str, text: str, methods: list[str]
) -> None:
    person = Person(elicitation_create={"action": "accept", "content": {"color": "red"}})
    result = await solved(tool, person, revision)

    assert result["content"] == [{"type": "text", "text": text}]
    assert [method for method, _ in person.asked] == methods


@BOTH
async def test_a_question_says_what_it_asks(revision: Revision) -> None:
    person = Person()
    for tool in ("wish", "visit", "think", "roots"):
        await solved(tool, person, revision)
    (_, wish), (_, visit), (_, think), (_, roots) = person.asked

    assert wish["message"] == "What do you wish?"
    assert wish["requestedSchema"]["properties"]["color"] == {"type": "string", "description": "Which color."}
    assert wish["requestedSchema"]["required"] == ["color"]
    assert (visit["mode"], visit["url"]) == ("url", "https://a.example/sign-in")
    assert ("elicitationId" in visit) == (not revision.stateless)
    assert think == {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Think."}}],
        "maxTokens": 5,
        "systemPrompt": "Be brief.",
        "temperature": 0.5,
    }
    assert not roots


@BOTH
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_user_may_refuse(revision: Revision, action: str) -> None:
    refused = Person(elicitation_create={"action": action, "content": {"color": 5}})
    for tool, text in (("wish", action), ("form", "None")):
        assert (await solved(tool, refused, revision))["content"][0]["text"] == text


@BOTH
async def test_a_form_by_schema_gives_the_content_as_it_is(revision: Revision) -> None:
    content = {"name": "Ada", "age": 36, "size": 1, "sure": True, "tags": ["a"], "more": None}
    person = Person(elicitation_create={"action": "accept", "content": content})

    assert (await solved("form", person, revision))["content"][0]["text"] == str(content)


WRONG = [
    ("wish", {"action": "maybe"}),
    ("wish", {"action": "accept"}),
    ("wish", {"action": "accept", "content": {"color": 5}}),
    ("wish", {"action": "accept", "content": {"color": "red", "count": 10}}),
    ("wish", []),
    ("form", {"action": "accept"}),
    ("form", {"action": "accept", "content": {}}),
    ("form", {"action": "accept", "content": {"name": 5}}),
    ("form", {"action": "accept", "content": {"name": "a", "age": 1.5}}),
    ("form", {"action": "accept", "content": {"name": "a", "age": True}}),
    ("form", {"action": "accept", "content": {"name": "a", "size": False}}),
    ("form", {"action": "accept", "content": {"name": "a", "sure": 1}}),
    ("form", {"action": "accept", "content": {"name": "a", "tags": "a"}}),
]


@pytest.mark.parametrize(("tool", "answer"), WRONG)
async def test_an_answer_that_does_not_fit_is_a_tool_error_after_a_handshake(tool: str, answer: Any) -> None:
    result = await solved(tool, Person(elicitation_create=answer), V2025_11_25)

    assert result["isError"] is True
    assert "does not fit what was asked" in result["content"][0]["text"]


@pytest.mark.parametrize(("tool", "answer"), WRONG)
async def test_an_answer_that_does_not_fit_is_a_wrong_parameter_in_the_stateless_era(
    tool: str, answer: Any
) -> None:
    with pytest.raises(ProtocolError, match="inputResponses") as refused:
        await solved(tool, Person(elicitation_create=answer), STATELESS)

    assert refused.value.code == -32602


@pytest.mark.parametrize(
    ("tool", "answer"),
    [
        ("think", {"role": "nobody"}),
        ("think", "thought"),
        ("roots", {"roots": [{}]}),
        ("roots", {"roots": 5}),
    ],
)
async def test_a_model_and_roots_are_held_to_their_form_too(tool: str, answer: Any) -> None:
    person = Person(sampling_createMessage=answer, roots_list=answer)

    assert (await solved(tool, person, V2025_11_25))["isError"] is True


@pytest.mark.parametrize(
    ("tool", "capabilities", "needed"),
    [
        ("wish", {}, {"elicitation": {}}),
        ("wish", {"elicitation": {"url": {}}}, {"elicitation": {}}),
        ("wish", {"elicitation": True}, {"elicitation": {}}),
        ("visit", {"elicitation": {}}, {"elicitation": {"url": {}}}),
        ("think", {"elicitation": {}}, {"sampling": {}}),
        ("think_hard", {"sampling": {}}, {"sampling": {"tools": {}}}),
        ("roots", {}, {"roots": {}}),
        ("everything", {"elicitation": {}, "sampling": {}}, {"roots": {}}),
    ],
)
async def test_a_client_without_the_capability_is_told_which_one_is_missing(
    tool: str, capabilities: dict[str, Any], needed: Any
) -> None:
    person = Person()
    async with open_to(person, STATELESS, capabilities) as client:
        error = await client.error("tools/call", {"name": tool})
    async with open_to(person, V2025_11_25, capabilities) as client:
        result = await client.call(tool)

    assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": needed})
    assert result["isError"] is True
    assert next(iter(needed)) in result["content"][0]["text"]
    assert person.asked == []


@pytest.mark.parametrize(
    ("tool", "revision"),
    [("wish", V2024_11_05), ("wish", V2025_03_26), ("visit", V2025_06_18), ("think_hard", V2025_06_18)],
)
async def test_what_a_revision_does_not_define_is_never_asked(tool: str, revision: Revision) -> None:
    person = Person()
    async with open_to(person, revision) as client:
        result = await client.call(tool)

    assert result["isError"] is True
    assert person.asked == []


@pytest.mark.parametrize(
    ("revision", "capabilities", "text"),
    [
        (STATELESS, {}, ""),
        (STATELESS, ALL, "a b c"),
        (V2025_06_18, {"elicitation": {}}, "a"),
        (V2024_11_05, ALL, "b c"),
    ],
)
async def test_a_tool_can_find_out_what_it_may_ask(
    revision: Revision, capabilities: dict[str, Any], text: str
) -> None:
    async with open_to(Person(), revision, capabilities) as client:
        assert await client.text("possible") == text


@BOTH
async def test_prompts_and_resources_can_ask_as_well(revision: Revision) -> None:
    person = Person()
    async with open_to(person, revision) as client:
        prompt = await solve(client, "prompts/get", {"name": "asking_prompt"}, person)
        resource = await solve(client, "resources/read", {"uri": "asking://roots"}, person)

    assert prompt["messages"][0]["content"]["text"] == "red"
    assert resource["contents"][0]["text"] == "2"


class Choice(Struct):
    color: Literal["red", "blue"]


class Strict(Arguments):
    color: str


@BOTH
@pytest.mark.parametrize("form", [Choice, Strict])
async def test_a_form_made_of_a_struct_has_only_what_forms_have(
    form: type[Struct], revision: Revision
) -> None:
    choosing: Bridge[None] = Bridge("choosing", "1")

    @choosing.tool("Ask for a choice.")
    async def choose(args: NoArguments, ctx: Context[None]) -> str:
        answer = await ctx.elicit("Which?", form)
        return str(answer.content.color)

    person = Person(elicitation_create={"action": "accept", "content": {"color": "red"}})
    async with connect(choosing, revision=revision, capabilities=ALL, answering=person) as client:
        result = await solve(client, "tools/call", {"name": "choose"}, person)

    assert result["content"][0]["text"] == "red"
    assert person.asked[0][1]["requestedSchema"]["properties"]["color"]["type"] == "string"


class Nested(Struct):
    inner: Choice


async def test_a_struct_that_no_form_can_show_is_a_bug_of_the_bridge(
    caplog: pytest.LogCaptureFixture,
) -> None:
    nesting: Bridge[None] = Bridge("nesting", "1")

    @nesting.tool("Ask for too much.")
    async def ask(args: NoArguments, ctx: Context[None]) -> str:
        return (await ctx.elicit("Which?", Nested)).action

    person = Person(elicitation_create={"action": "decline"})
    async with connect(nesting, capabilities=ALL, answering=person) as client:
        assert (await client.call("ask"))["isError"]

    assert person.asked == []
    assert "inner" in caplog.text
