"""Routing: a request goes to the process that its session or task names, and nowhere else."""

from types import SimpleNamespace
from typing import Any

import pytest

from bridgehead.host.ownership.forwarding import OwnerGone, Peers
from bridgehead.host.ownership.owners import Owners
from bridgehead.host.ownership.routing import OwnerRouter
from bridgehead.mcp import Limits

HOST = "aaaaaaaaaaaa"
ELSEWHERE = b"bbbbbbbbbbbb.0~x"


class Workers(Peers):
    """Three workers, of which we are the second; the last one does not answer."""

    def __init__(self) -> None:
        super().__init__(Owners(HOST, 1, ("a:1", "b:1", "c:1")), (b"key",))

    async def forward(self, owner: str, request: Any, body: bytes) -> Any:
        if owner != f"{HOST}.0":
            raise OwnerGone
        return f"{owner}: {body.decode()}"


class OwnApplication:
    def __call__(self, request: Any) -> Any:
        async def answer() -> str:
            return "here"

        return answer()

    def reject(self, request: Any, rejection: Any) -> str:
        return f"rejected: {rejection.response.status}"


async def answer(headers: dict[bytes, bytes], query: bytes = b"") -> Any:
    request: Any = SimpleNamespace(headers=headers, query=query, is_complete=True, body=b"{}")
    application: Any = OwnApplication()
    answering: Any = OwnerRouter(application, Workers(), Limits())(request)
    return await answering


def session(identifier: bytes) -> dict[bytes, bytes]:
    return {b"mcp-session-id": identifier}


def task(identifier: bytes, method: bytes = b"tasks/get") -> dict[bytes, bytes]:
    return {b"mcp-method": method, b"mcp-name": identifier}


@pytest.mark.parametrize(
    "identifier",
    [
        b"",
        b"aaaaaaaaaaaa.1~x",
        b"aaaaaaaaaaaa~x",
        b"AAAAAAAAAAAA.0~x",
        b"aaaaaaaaaaaa.0",
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
    owned = b"aaaaaaaaaaaa.0~x"
    assert await answer(session(owned)) == "aaaaaaaaaaaa.0: {}"
    assert await answer({}, b"session_id=" + owned) == "aaaaaaaaaaaa.0: {}"
    assert await answer({}, b"other=" + owned) == "here"
    assert await answer(session(b"aaaaaaaaaaaa.1~x"), b"session_id=" + owned) == "here"


@pytest.mark.parametrize("method", [b"tasks/get", b"tasks/update", b"tasks/cancel"])
async def test_what_concerns_a_task_of_another_process_is_forwarded(method: bytes) -> None:
    assert await answer(task(b"aaaaaaaaaaaa.0~x", method)) == "aaaaaaaaaaaa.0: {}"


async def test_a_tool_that_is_named_like_a_task_is_called_here() -> None:
    assert await answer(task(b"aaaaaaaaaaaa.0~x", b"tools/call")) == "here"


async def test_a_session_is_gone_with_its_process() -> None:
    assert await answer(session(b"aaaaaaaaaaaa.2~x")) == "rejected: 404"
    assert await answer(session(ELSEWHERE)) == "rejected: 404"


async def test_a_task_whose_process_has_gone_is_looked_for_in_the_store() -> None:
    assert await answer(task(ELSEWHERE)) == "here"


async def test_a_task_whose_process_does_not_answer_is_asked_for_again() -> None:
    assert await answer(task(b"aaaaaaaaaaaa.2~x")) == "rejected: 503"
