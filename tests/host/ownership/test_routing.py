"""Routing: a request goes to the process that its session or task names, and nowhere else."""

from types import SimpleNamespace
from typing import Any

import pytest

from bridgehead.host.ownership.forwarding import ClocksDiffer, OwnerGone, Peers
from bridgehead.host.ownership.owners import Owners, node_key
from bridgehead.host.ownership.routing import OwnerRouter
from bridgehead.mcp import Limits
from bridgehead.mcp.http.accounts import Accounts
from bridgehead.mcp.http.message import Response
from bridgehead.runtime.stores import StoreUnavailable
from tests.host.ownership.test_owners import entry

OTHER, US, SILENT = "aaaaaaaaaaa0-3", "aaaaaaaaaaa1-3", "aaaaaaaaaaa2-3"
ELSEWHERE = b"bbbbbbbbbbbb-3~x"


class Directory:
    """What Redis holds: the addresses of three replicas."""

    async def call(self, _command: str, key: str) -> bytes | None:
        known = {node_key(name): entry(name, "a:1", b"key").encode() for name in (OTHER, US, SILENT)}
        return known.get(key)


class Replicas(Peers):
    """Three replicas, of which we are the second; the last one does not answer."""

    def __init__(self) -> None:
        directory: Any = Directory()
        super().__init__(Owners(US, directory, (b"key",)), (b"key",))

    async def forward(self, owner: str, request: Any, body: bytes) -> Any:
        if owner != OTHER:
            raise OwnerGone
        return f"{owner}: {body.decode()}"


class OwnApplication:
    def __init__(self) -> None:
        self.accounts = Accounts(Limits())

    def __call__(self, request: Any) -> Any:
        async def answer() -> str:
            return "here"

        return answer()

    def reject(self, request: Any, rejection: Any) -> str:
        self.rejection = rejection
        return f"rejected: {rejection.response.status}"

    async def admit(self, request: Any) -> Response | bool:
        if b"unknown" in request.headers:
            return Response(401)
        return b"a page" not in request.headers


async def answer(headers: dict[bytes, bytes], query: bytes = b"") -> Any:
    request: Any = SimpleNamespace(headers=headers, query=query, is_complete=True, body=b"{}")
    application: Any = OwnApplication()
    answering: Any = OwnerRouter(application, Replicas(), Limits())(request)
    return await answering


def session(identifier: bytes) -> dict[bytes, bytes]:
    return {b"mcp-session-id": identifier}


def task(identifier: bytes, method: bytes = b"tasks/get") -> dict[bytes, bytes]:
    return {b"mcp-method": method, b"mcp-name": identifier}


@pytest.mark.parametrize(
    "identifier",
    [
        b"",
        b"aaaaaaaaaaa1-3~x",
        b"aaaaaaaaaaaa~x",
        b"AAAAAAAAAAA0-3~x",
        b"aaaaaaaaaaa0-3",
        b"0~x",
        b".0~x",
        b"\xb2~a",
    ],
)
async def test_what_names_no_other_process_is_answered_here(identifier: bytes) -> None:
    assert await answer(session(identifier)) == "here"
    assert await answer(task(identifier)) == "here"
    assert await answer({}) == "here"


async def test_a_session_of_another_process_is_forwarded() -> None:
    owned = b"aaaaaaaaaaa0-3~x"
    assert await answer(session(owned)) == "aaaaaaaaaaa0-3: {}"
    assert await answer({}, b"session_id=" + owned) == "aaaaaaaaaaa0-3: {}"
    assert await answer({}, b"other=" + owned) == "here"
    assert await answer(session(b"aaaaaaaaaaa1-3~x"), b"session_id=" + owned) == "here"


@pytest.mark.parametrize("method", [b"tasks/get", b"tasks/update", b"tasks/cancel"])
async def test_what_concerns_a_task_of_another_process_is_forwarded(method: bytes) -> None:
    assert await answer(task(b"aaaaaaaaaaa0-3~x", method)) == "aaaaaaaaaaa0-3: {}"


async def test_a_tool_that_is_named_like_a_task_is_called_here() -> None:
    assert await answer(task(b"aaaaaaaaaaa0-3~x", b"tools/call")) == "here"


async def test_a_session_is_gone_with_its_process() -> None:
    assert await answer(session(b"aaaaaaaaaaa2-3~x")) == "rejected: 404"
    assert await answer(session(ELSEWHERE)) == "rejected: 404"


@pytest.mark.parametrize("other_version", [b"aaaaaaaaaaaa.0~x", b"aaaaaaaaaaaa-2~x"])
async def test_a_session_of_another_version_begins_anew_and_the_log_says_why(other_version: bytes) -> None:
    rejection = await rejection_of(session(other_version), Replicas())

    assert (rejection.response.status, rejection.reason) == (404, "version")
    assert "another version of this server" in rejection.error.message
    assert await answer(task(other_version)) == "here", "the store knows how it ended"


async def test_a_task_whose_process_has_gone_is_looked_for_in_the_store() -> None:
    assert await answer(task(ELSEWHERE)) == "here"


async def rejection_of(headers: dict[bytes, bytes], peers: Peers) -> Any:
    application: Any = OwnApplication()
    asked: Any = SimpleNamespace(headers=headers, query=b"", is_complete=True, body=b"{}")
    answering: Any = OwnerRouter(application, peers, Limits())(asked)
    await answering
    return application.rejection


async def test_a_task_whose_process_does_not_answer_is_asked_for_again() -> None:
    rejection = await rejection_of(task(b"aaaaaaaaaaa2-3~x"), Replicas())

    assert (rejection.response.status, rejection.reason) == (503, "task")
    assert (b"retry-after", b"1") in rejection.response.headers
    gone = await rejection_of(session(b"aaaaaaaaaaa2-3~x"), Replicas())
    assert (gone.response.status, gone.reason) == (404, "session")


class Unreachable(Replicas):
    async def forward(self, owner: str, request: Any, body: bytes) -> Any:
        raise StoreUnavailable("Redis is away")


@pytest.mark.parametrize(("named", "subject"), [(task, "task"), (session, "session")])
async def test_without_redis_a_client_is_asked_to_try_again(named: Any, subject: str) -> None:
    rejection = await rejection_of(named(b"aaaaaaaaaaa0-3~x"), Unreachable())

    assert (rejection.response.status, rejection.reason) == (503, "store")
    assert (b"retry-after", b"1") in rejection.response.headers
    assert f"The {subject}'s server cannot be found" in rejection.response.body.decode()


class Arriving:
    """A request whose body comes in pieces."""

    is_complete = False
    query = b""
    caller = "somebody"

    def __init__(self, headers: dict[bytes, bytes], *pieces: bytes) -> None:
        self.headers = headers
        self._pieces = [*pieces, b""]

    async def read(self) -> bytes:
        return self._pieces.pop(0)


async def route(request: Any, limits: Limits) -> Any:
    application: Any = OwnApplication()
    answering: Any = OwnerRouter(application, Replicas(), limits)(request)
    return await answering


async def test_a_body_on_its_way_is_read_before_it_is_forwarded_unless_its_head_is_refused() -> None:
    owned = session(b"aaaaaaaaaaa0-3~x")

    assert await route(Arriving(owned, b"la", b"te"), Limits()) == "aaaaaaaaaaa0-3: late"
    assert await route(Arriving({**owned, b"unknown": b""}, b"late"), Limits()) == Response(401)
    assert await route(Arriving(owned, b"late"), Limits(message_bytes=3)) == "rejected: 413"


@pytest.mark.parametrize("owned", [session(b"aaaaaaaaaaa0-3~x"), task(b"aaaaaaaaaaa0-3~x")])
async def test_nothing_is_forwarded_before_its_caller_is_known_nor_from_a_page(owned: Any) -> None:
    assert await answer({**owned, b"unknown": b""}) == Response(401)
    assert await answer({**owned, b"a page": b""}) == "here"


async def test_clocks_that_differ_are_the_operators_to_set_and_no_lost_session() -> None:
    class LateReplicas(Replicas):
        async def forward(self, owner: str, request: Any, body: bytes) -> Any:
            raise ClocksDiffer(400.0)

    rejection = await rejection_of(session(b"aaaaaaaaaaa2-3~x"), LateReplicas())

    assert (rejection.response.status, rejection.reason) == (503, "clock")
    assert "differ by 400 s" in rejection.error.message
