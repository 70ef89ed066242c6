"""The server of a bridge: what it opens, remembers and tells, and that it lets go of everything."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from bridgehead.mcp import Bridge, Limits, ToolError
from bridgehead.mcp.changes import TOOLS, Listener
from bridgehead.mcp.connection import Client, Connection
from bridgehead.mcp.limits import Ledger
from bridgehead.mcp.revisions import V2025_11_25
from bridgehead.mcp.server import EMPTY_BODY, Body, Server
from bridgehead.mcp.tasks.manager import Tasks
from tests.support.waiting import until


def make_server() -> Server:
    return Server(Bridge[None]("served", "1", changing={"tools"}))


async def test_starting_opens_what_the_bridge_needs_and_stopping_lets_go_of_it() -> None:
    seen = []

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        seen.append("open")
        yield None
        seen.append("closed")

    server = Server(Bridge[None]("served", "1", lifespan=lifespan))
    server.start()
    await until(lambda: seen == ["open"])
    await server.stop()
    assert seen == ["open", "closed"]


def test_a_body_is_made_once_until_the_lists_change() -> None:
    server, made = make_server(), []

    def make() -> Body:
        made.append(1)
        return EMPTY_BODY

    for _ in range(3):
        server.reuse_body("key", make)
    assert len(made) == 1
    server.reuse_body("another", make)
    assert len(made) == 2
    for turn in (3, 4):
        server.bridge.changed.tools()
        for _ in range(3):
            server.reuse_body("key", make)
        assert len(made) == turn


async def test_tasks_are_made_once_unless_they_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[Tasks] = []

    async def stop(tasks: Tasks) -> None:
        stopped.append(tasks)

    monkeypatch.setattr(Tasks, "stop", stop)
    shared = Tasks(Limits())
    sharing, alone = Server(Bridge[None]("served", "1"), tasks=shared), make_server()
    own = alone.tasks

    assert sharing.tasks is shared
    assert own is alone.tasks
    assert own is not shared
    for server in (sharing, alone, make_server()):
        await server.stop()
    assert stopped == [own]  # those that are shared are for others to stop


def test_a_server_keeps_its_tasks_apart_by_the_name_of_its_bridge_or_as_it_is_told() -> None:
    bridge = Bridge[None]("served", "1")

    assert [Server(bridge).scope, Server(bridge, scope="all").scope] == ["served", "all"]


async def test_a_stream_hears_of_changes_only_while_it_is_open() -> None:
    server, listener = make_server(), Listener({TOOLS}, set())
    connection = Connection(Limits())
    with server.open_stream(connection, listener):
        assert server.streams == {listener}
        assert connection.listeners == [listener]
        server.bridge.changed.tools()
        assert [TOOLS.encode() in message for message in listener.take()] == [True]

    server.bridge.changed.tools()
    assert listener.take() == []
    assert server.streams == set()
    assert connection.listeners == []


async def test_the_end_of_the_server_ends_its_streams() -> None:
    server, listener = make_server(), Listener({TOOLS}, set())
    with server.open_stream(Connection(Limits()), listener):
        server.end_streams()
        assert not await listener.wait()


async def test_nothing_is_kept_for_a_client_that_is_gone() -> None:
    server, connection = make_server(), Connection(Limits())
    server.adopt(connection, Client(V2025_11_25, {}, {}))
    listener = connection.listener
    assert listener is not None
    question: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    connection.asked[1] = question
    work: Any = SimpleNamespace(cancel=lambda: stopped.append("work"))
    connection.in_flight[2] = work
    stopped: list[str] = []

    server.disconnect(connection)
    server.bridge.changed.tools()

    assert listener.take() == []
    assert not await listener.wait()
    with pytest.raises(ToolError, match="left before it answered"):
        await question
    assert stopped == ["work"]


async def test_a_client_that_shakes_hands_again_has_one_listener() -> None:
    server, connection = make_server(), Connection(Limits())
    server.adopt(connection, Client(V2025_11_25, {}, {}))
    first = connection.listener
    server.adopt(connection, Client(V2025_11_25, {"roots": {}}, {}))

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
    server, connection = make_server(), Connection(Limits())
    book = server.ledger = Book()
    server.adopt(connection, Client(V2025_11_25, {}, {}))
    assert connection.listener is not None
    connection.listener.uris.add("a:b")
    size = connection.listener.size
    for _ in range(2):
        server.disconnect(connection)

    assert book.released == [size, 0]
    assert size > 0


@pytest.mark.parametrize(
    ("contract", "names_revision", "is_shown"),
    [("2025-11-25", False, True), ("2025-11-25", True, False), (None, False, False)],
)
async def test_a_client_that_names_no_revision_is_shown_the_contract_alone(
    contract: str | None, *, names_revision: bool, is_shown: bool
) -> None:
    server = Server(Bridge[None]("served", "1", changing={"tools"}, contract_revision=contract))
    connection, client = Connection(Limits()), Client(V2025_11_25, {}, {}, names_revision=names_revision)
    server.adopt(connection, client)

    assert server.shows_contract(client) is is_shown
    assert connection.listener is not None
    assert connection.listener.lists == (set() if is_shown else {TOOLS})
