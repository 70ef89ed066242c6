"""The dispatcher: eras, what comes before initialize, ids in flight, and batches."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from bridgehead.mcp import Bridge, Context, Limits, NoArguments, ProtocolError, ToolError, in_memory, jsonrpc
from bridgehead.mcp.calls.params import META_PREFIX
from bridgehead.mcp.changes import TOOLS, Listener
from bridgehead.mcp.connection import Client, Connection
from bridgehead.mcp.dispatch import Dispatcher
from bridgehead.mcp.features.results import EMPTY_BODY, Body
from bridgehead.mcp.in_memory import InMemoryClient
from bridgehead.mcp.jsonrpc import Message
from bridgehead.mcp.limits import Ledger
from bridgehead.mcp.requests import read
from bridgehead.mcp.revisions import HANDSHAKE, V2025_03_26, V2025_11_25, Revision
from bridgehead.mcp.tasks.manager import Tasks
from tests.mcp.gate import STATELESS_META, Gate, encoded, make_request
from tests.support.checked import STATELESS, connect
from tests.support.waiting import PATIENCE, until


@pytest.mark.parametrize("method", ["tools/list", "tools/call", "logging/setLevel", "nonsense"])
async def test_a_request_before_initialize_is_told_what_to_send_first(method: str) -> None:
    async with connect(Gate().bridge, revision=STATELESS) as client:
        error = (await client.raw(encoded(make_request(1, method))))["error"]

    assert error["code"] == -32600
    assert "initialize" in error["message"]


async def test_ping_is_answered_with_nothing_before_and_after_initialize() -> None:
    async with connect(Gate().bridge, revision=STATELESS) as client:
        assert (await client.raw(encoded(make_request(1, "ping"))))["result"] == {}
        await client.raw(encoded(make_request(2, "initialize")))
        assert (await client.raw(encoded(make_request(3, "ping"))))["result"] == {}


@pytest.mark.parametrize(
    "method", ["ping", "initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]
)
async def test_a_method_of_the_handshake_era_does_not_exist_in_the_stateless_one(method: str) -> None:
    bridge: Bridge[None] = Bridge("all", "1", subscribable=True)
    async with connect(bridge, revision=STATELESS) as client:
        assert (await client.error(method, {"uri": "a:b", "level": "info"}))["code"] == -32601


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen"])
async def test_a_method_of_the_stateless_era_does_not_exist_after_a_handshake(method: str) -> None:
    async with connect(Gate().bridge) as client:
        assert (await client.error(method, {"notifications": {}}))["code"] == -32601


async def test_a_bridge_that_offers_everything_answers_every_method() -> None:
    bridge: Bridge[None] = Bridge("all", "1", subscribable=True)
    bridge.extension("io.modelcontextprotocol/skills")

    @bridge.tool("Work.", task="required")
    async def work() -> str:
        return "done"

    @bridge.resource("a:b", name="b")
    def read() -> str:
        return "b"

    @bridge.prompt("Greet.")
    def greet(name: str) -> str:
        return f"Hello {name}"

    @bridge.complete_prompt("greet", "name")
    def names(value: str, _given: dict[str, str], _ctx: Context[None]) -> list[str]:
        return [f"{value}dam"]

    greeting = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": "A"}}
    members: dict[str, tuple[dict[str, Any], str]] = {
        "tools/list": ({}, "tools"),
        "resources/list": ({}, "resources"),
        "resources/templates/list": ({}, "resourceTemplates"),
        "resources/read": ({"uri": "a:b"}, "contents"),
        "prompts/list": ({}, "prompts"),
        "prompts/get": ({"name": "greet", "arguments": {"name": "Ada"}}, "messages"),
        "completion/complete": (greeting, "completion"),
        "skills/list": ({}, "skills"),
    }
    unknown: dict[str, dict[str, Any]] = {
        "tasks/get": {"taskId": "x"},
        "tasks/update": {"taskId": "x", "inputResponses": {}},
        "tasks/cancel": {"taskId": "x"},
        "skills/get": {"uri": "skill://x/SKILL.md"},
    }
    capabilities: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    async with in_memory.connect(bridge, revision=STATELESS, capabilities=capabilities) as client:
        for method, (params, member) in members.items():
            assert member in await client.request(method, params), method
        for method, params in unknown.items():
            with pytest.raises(ProtocolError) as refused:
                await client.request(method, params)
            assert (method, refused.value.code) == (method, -32602)


@pytest.mark.parametrize(
    ("meta", "missing"),
    [
        ({}, "protocolVersion"),
        ({META_PREFIX + "clientCapabilities": {}}, "protocolVersion"),
        ({META_PREFIX + "protocolVersion": "2026-07-28"}, "clientCapabilities"),
    ],
)
async def test_discovery_names_what_its_meta_lacks(meta: dict[str, Any], missing: str) -> None:
    async with connect(Gate().bridge, revision=STATELESS) as client:
        error = (await client.raw(encoded(make_request(1, "server/discover", _meta=meta))))["error"]

    assert error["code"] == -32602
    assert META_PREFIX + missing in error["message"]


async def test_discovery_without_parameters_is_refused() -> None:
    async with connect(Gate().bridge, revision=STATELESS) as client:
        answer = await client.raw(b'{"jsonrpc":"2.0","id":1,"method":"server/discover"}')

    assert answer["error"]["code"] == -32602


@pytest.mark.parametrize("version", ["2025-11-25", "1999-01-01", "2027-01-01"])
async def test_a_stateless_request_in_a_version_that_is_not_stateless_is_told_which_are(version: str) -> None:
    async with connect(Gate().bridge, revision=STATELESS) as client:
        meta = STATELESS_META | {META_PREFIX + "protocolVersion": version}
        error = (await client.raw(encoded(make_request(1, "tools/list", _meta=meta))))["error"]

    assert error["code"] == -32022
    assert error["data"] == {"supported": ["2026-07-28"], "requested": version}


async def test_an_id_that_is_in_flight_is_refused_and_its_request_goes_on() -> None:
    gate = Gate()
    async with connect(gate.bridge) as client:
        request_id, waiting = client.start("tools/call", {"name": "wait"})
        await gate.reached.wait()
        for method in ("ping", "tools/call"):
            twin = await client.raw(encoded(make_request(request_id, method, name="wait")))
            assert twin["error"]["code"] == -32600
            assert "already in flight" in twin["error"]["message"]
        gate.open.set()

        assert (await waiting)["result"]["content"][0]["text"] == "through"
        assert not client.connection.in_flight


async def test_a_number_and_its_text_are_different_ids() -> None:
    gate = Gate()
    async with connect(gate.bridge) as client:
        request_id, waiting = client.start("tools/call", {"name": "wait"})
        await gate.reached.wait()

        assert (await client.raw(encoded(make_request(str(request_id), "ping"))))["id"] == str(request_id)
        gate.open.set()
        assert (await waiting)["id"] == request_id


async def test_an_id_can_be_used_again_once_it_is_answered() -> None:
    async with connect(Gate().bridge) as client:
        for number in (1, 2):
            call = make_request("same", "tools/call", name="double", arguments={"number": number})
            assert (await client.raw(encoded(call)))["result"]["content"][0]["text"] == str(2 * number)


async def test_a_transport_that_was_told_the_stateless_era_holds_the_request_to_it() -> None:
    async with connect(Gate().bridge) as client:
        request = read(1, "tools/list", Message("2.0"))
        with pytest.raises(ProtocolError, match="_meta needs"):
            client.dispatcher.handle_request(request, client.connection, client, expected=STATELESS)

        assert client.dispatcher.handle_request(request, client.connection, client, expected=V2025_11_25)


async def test_whoever_counts_errors_hears_their_method_and_code() -> None:
    heard: list[tuple[str, int]] = []
    dispatcher = Dispatcher(
        Gate().bridge, on_error=lambda method, failure: heard.append((method, failure.code))
    )
    client = InMemoryClient(dispatcher, STATELESS, {})
    calls: list[tuple[str, dict[str, Any]]] = [
        ("x" * 1000, {}),
        ("tools/call", {"name": 5}),
        ("tools/call", {"name": "nobody"}),
        ("tools/list", {}),
        ("tools/list", {"_meta": STATELESS_META | {META_PREFIX + "protocolVersion": "1999-01-01"}}),
    ]
    codes = []
    for method, params in calls:
        message = {"id": 1, "method": method, "params": {"_meta": STATELESS_META, **params}}
        answer = await client.raw(msgspec.json.encode({"jsonrpc": "2.0", **message}))
        codes.append(answer.get("error", {}).get("code"))

    assert heard[:3] == [("(unknown)", -32601), ("tools/call", -32602), ("tools/call", -32602)]
    assert heard[3:] == [("tools/list", codes[4])]


async def test_a_failure_of_a_handler_is_raised_to_a_transport_that_encodes_it_itself() -> None:
    bridge: Bridge[None] = Bridge("failing", "1")

    @bridge.tool("Fail.")
    async def fail(args: NoArguments, ctx: Context[None]) -> str:
        await asyncio.sleep(0)
        raise ProtocolError(-32099, "No.")

    async with connect(bridge) as client:
        params = msgspec.Raw(msgspec.json.encode({"name": "fail", "arguments": {}}))
        request = read(1, "tools/call", Message("2.0", params=params))
        answer = client.dispatcher.handle_request(request, client.connection, client)

        assert not isinstance(answer, bytes)
        with pytest.raises(ProtocolError, match="No"):
            await answer


async def test_a_batch_is_answered_with_one_array_in_its_order() -> None:
    gate = Gate()
    gate.open.set()
    batch = [
        make_request("slow", "tools/call", name="wait"),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        make_request("fast", "tools/call", name="double", arguments={"number": 21}),
        make_request("hello", "initialize"),
        make_request("wrong", "nonsense"),
        [make_request("inner", "ping")],
        17,
    ]
    async with connect(gate.bridge, revision=V2025_03_26) as client:
        answers = await client.raw(encoded(batch))

        assert [answer["id"] for answer in answers] == ["slow", "fast", "hello", "wrong", None, None]
        assert answers[0]["result"]["content"][0]["text"] == "through"
        assert answers[1]["result"]["content"][0]["text"] == "42"
        assert [answer["error"]["code"] for answer in answers[2:]] == [-32600, -32601, -32600, -32600]
        assert not client.connection.in_flight


async def test_a_batch_of_notifications_gets_no_answer() -> None:
    async with connect(Gate().bridge, revision=V2025_03_26) as client:
        batch = [{"jsonrpc": "2.0", "method": "notifications/initialized"}] * 2

        assert await client.raw(encoded(batch)) is None


async def test_a_batch_of_notifications_is_read() -> None:
    gate = Gate()
    async with connect(gate.bridge, revision=V2025_03_26) as client:
        waiting = asyncio.ensure_future(client.raw(encoded(make_request("held", "tools/call", name="wait"))))
        await gate.reached.wait()
        cancelled = {"method": "notifications/cancelled", "params": {"requestId": "held"}}
        assert await client.raw(encoded([{"jsonrpc": "2.0", **cancelled}])) is None

        async with asyncio.timeout(PATIENCE):
            assert await waiting is None


async def test_a_request_of_a_batch_that_is_cancelled_is_left_out_of_the_array() -> None:
    gate = Gate()
    async with connect(gate.bridge, revision=V2025_03_26) as client:
        batch = [make_request("held", "tools/call", name="wait"), make_request("other", "ping")]
        waiting = asyncio.ensure_future(client.raw(encoded(batch)))
        await gate.reached.wait()
        await client.notify("notifications/cancelled", {"requestId": "held"})

        assert [answer["id"] for answer in await waiting] == ["other"]
        assert not client.connection.in_flight


async def test_a_batch_whose_requests_are_all_cancelled_gets_no_answer() -> None:
    gate = Gate()
    async with connect(gate.bridge, revision=V2025_03_26) as client:
        waiting = asyncio.ensure_future(
            client.raw(encoded([make_request("held", "tools/call", name="wait")]))
        )
        await gate.reached.wait()
        await client.notify("notifications/cancelled", {"requestId": "held"})

        assert await waiting is None


async def test_a_batch_has_no_more_messages_than_requests_may_be_in_flight() -> None:
    async with connect(Gate().bridge, revision=V2025_03_26, limits=Limits(requests_in_flight=2)) as client:
        answer = await client.raw(encoded([make_request(number, "ping") for number in range(3)]))

        assert (answer["id"], answer["error"]["code"]) == (None, -32600)
        assert "2 messages" in answer["error"]["message"]
        assert len(await client.raw(encoded([make_request(number, "ping") for number in range(2)]))) == 2


@pytest.mark.parametrize("revision", [r for r in HANDSHAKE.values() if r != V2025_03_26], ids=str)
async def test_a_batch_is_refused_where_the_revision_has_none(revision: Revision) -> None:
    async with connect(Gate().bridge, revision=revision) as client:
        answer = await client.raw(encoded([make_request(1, "ping"), make_request(2, "ping")]))

    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert "2025-03-26" in answer["error"]["message"]


async def test_a_batch_before_initialize_and_in_the_stateless_era_is_refused() -> None:
    async with connect(Gate().bridge, revision=STATELESS) as client:
        answer = await client.raw(encoded([make_request(1, "tools/list", _meta=STATELESS_META)]))

    assert (answer["id"], answer["error"]["code"]) == (None, -32600)


async def test_a_failure_that_is_answered_keeps_no_frames_of_its_call() -> None:
    """Whatever still holds it, such as a future, would keep the arguments of the call alive."""
    failures: list[Exception] = []
    bridge: Bridge[None] = Bridge("failing", "1")

    @bridge.tool("Fail.")
    async def fail() -> str:
        await asyncio.sleep(0)
        failures.append(ToolError("It failed."))
        raise failures[0]

    async with connect(bridge) as client:
        assert (await client.call("fail"))["isError"]

    assert failures[0].__traceback__ is None


@pytest.mark.parametrize("revision", [V2025_11_25, STATELESS])
@pytest.mark.parametrize("size", [jsonrpc.LARGE_BYTES // 2, jsonrpc.LARGE_BYTES * 2])
async def test_a_large_result_is_answered_like_a_small_one(revision: Revision, size: int) -> None:
    bridge: Bridge[None] = Bridge("large", "1")

    @bridge.tool
    def much() -> str:
        """Answer with much."""
        return "x" * size

    async with connect(bridge, revision=revision) as client:
        result = await client.call("much")

    assert result["content"] == [{"type": "text", "text": "x" * size}]
    assert ("_meta" in result) == revision.stateless


# --- what outlives a request -------------------------------------------------------------------------------


def make_dispatcher() -> Dispatcher:
    return Dispatcher(Bridge[None]("served", "1", changing={"tools"}))


async def test_starting_opens_what_the_bridge_needs_and_stopping_lets_go_of_it() -> None:
    seen = []

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        seen.append("open")
        yield None
        seen.append("closed")

    dispatcher = Dispatcher(Bridge[None]("served", "1", lifespan=lifespan))
    dispatcher.start()
    await until(lambda: seen == ["open"])
    await dispatcher.stop()
    assert seen == ["open", "closed"]


def test_a_body_is_made_once_until_the_lists_change() -> None:
    dispatcher, made = make_dispatcher(), []

    def make() -> Body:
        made.append(1)
        return EMPTY_BODY

    for _ in range(3):
        dispatcher.reuse_body("key", make)
    assert len(made) == 1
    dispatcher.reuse_body("another", make)
    assert len(made) == 2
    for turn in (3, 4):
        dispatcher.bridge.changed.tools()
        for _ in range(3):
            dispatcher.reuse_body("key", make)
        assert len(made) == turn


async def test_tasks_are_made_once_unless_they_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[Tasks] = []

    async def stop(tasks: Tasks) -> None:
        stopped.append(tasks)

    monkeypatch.setattr(Tasks, "stop", stop)
    shared = Tasks(Limits())
    sharing, alone = Dispatcher(Bridge[None]("served", "1"), tasks=shared), make_dispatcher()
    own = alone.tasks

    assert sharing.tasks is shared
    assert own is alone.tasks
    assert own is not shared
    for dispatcher in (sharing, alone, make_dispatcher()):
        await dispatcher.stop()
    assert stopped == [own]  # those that are shared are for others to stop


def test_a_server_keeps_its_tasks_apart_by_the_name_of_its_bridge_or_as_it_is_told() -> None:
    bridge = Bridge[None]("served", "1")

    assert [Dispatcher(bridge).scope, Dispatcher(bridge, scope="all").scope] == ["served", "all"]


async def test_a_stream_hears_of_changes_only_while_it_is_open() -> None:
    dispatcher, listener = make_dispatcher(), Listener({TOOLS}, set())
    connection = Connection(Limits())
    with dispatcher.open_stream(connection, listener):
        assert dispatcher.streams == {listener}
        assert connection.listeners == [listener]
        dispatcher.bridge.changed.tools()
        assert [TOOLS.encode() in message for message in listener.take()] == [True]

    dispatcher.bridge.changed.tools()
    assert listener.take() == []
    assert dispatcher.streams == set()
    assert connection.listeners == []


async def test_the_end_of_the_server_ends_its_streams() -> None:
    dispatcher, listener = make_dispatcher(), Listener({TOOLS}, set())
    with dispatcher.open_stream(Connection(Limits()), listener):
        dispatcher.end_streams()
        assert not await listener.wait()


async def test_nothing_is_kept_for_a_client_that_is_gone() -> None:
    dispatcher, connection = make_dispatcher(), Connection(Limits())
    dispatcher.adopt(connection, Client(V2025_11_25, {}, {}))
    listener = connection.listener
    assert listener is not None
    question: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    connection.asked[1] = question
    work: Any = SimpleNamespace(cancel=lambda: stopped.append("work"))
    connection.in_flight[2] = work
    stopped: list[str] = []

    dispatcher.disconnect(connection)
    dispatcher.bridge.changed.tools()

    assert listener.take() == []
    assert not await listener.wait()
    with pytest.raises(ToolError, match="left before it answered"):
        await question
    assert stopped == ["work"]


async def test_a_client_that_shakes_hands_again_has_one_listener() -> None:
    dispatcher, connection = make_dispatcher(), Connection(Limits())
    dispatcher.adopt(connection, Client(V2025_11_25, {}, {}))
    first = connection.listener
    dispatcher.adopt(connection, Client(V2025_11_25, {"roots": {}}, {}))

    assert connection.listener is first
    assert connection.client is not None
    assert connection.client.capabilities == {"roots": {}}


class Book(Ledger):
    """Notes what is given back."""

    def __init__(self) -> None:
        self.released: list[int] = []

    def release(self, caller: str, size: int) -> None:
        self.released.append(size)


async def test_a_client_that_is_gone_gives_back_once_what_its_subscriptions_took() -> None:
    dispatcher, connection = make_dispatcher(), Connection(Limits())
    book = dispatcher.ledger = Book()
    dispatcher.adopt(connection, Client(V2025_11_25, {}, {}))
    assert connection.listener is not None
    connection.listener.uris.add("a:b")
    size = connection.listener.size
    for _ in range(2):
        dispatcher.disconnect(connection)

    assert book.released == [size, 0]
    assert size > 0


@pytest.mark.parametrize(
    ("contract", "names_revision", "is_shown"),
    [("2025-11-25", False, True), ("2025-11-25", True, False), (None, False, False)],
)
async def test_a_client_that_names_no_revision_is_shown_the_contract_alone(
    contract: str | None, *, names_revision: bool, is_shown: bool
) -> None:
    dispatcher = Dispatcher(Bridge[None]("served", "1", changing={"tools"}, contract_revision=contract))
    connection, client = Connection(Limits()), Client(V2025_11_25, {}, {}, names_revision=names_revision)
    dispatcher.adopt(connection, client)

    assert dispatcher.shows_contract(client) is is_shown
    assert connection.listener is not None
    assert connection.listener.lists == (set() if is_shown else {TOOLS})
