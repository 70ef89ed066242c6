"""Sharding: a request goes to the worker that its session names, and nowhere else."""

from types import SimpleNamespace
from typing import Any

import pytest

from bridgehead.host.workers.forwarding import WorkerGone, Workers
from bridgehead.host.workers.sharding import ShardedApplication
from bridgehead.mcp import Limits

OWN = 1


class Fleet:
    """Three workers, of which we are the second; the last one has gone."""

    owner_of = Workers(OWN, (1001, 1002, 1003), b"secret").owner_of

    async def forward(self, owner: int, request: Any, body: bytes) -> str:
        if owner == 2:
            raise WorkerGone
        return f"worker {owner}: {body.decode()}"


class OwnApplication:
    def __call__(self, request: Any) -> str:
        return "here"

    def reject(self, request: Any, rejection: Any) -> str:
        return f"rejected: {rejection.response.status}"


def asked(session: bytes | None = None, query: bytes = b"") -> Any:
    headers = {} if session is None else {b"mcp-session-id": session}
    request = SimpleNamespace(headers=headers, query=query, is_complete=True, body=b"{}")
    application: Any = OwnApplication()
    workers: Any = Fleet()
    answer: Any = ShardedApplication(application, workers, Limits())(request)  # type: ignore[arg-type]
    return answer


@pytest.mark.parametrize(
    "session",
    [None, b"", b"1~abc", b"3~abc", b"9~abc", b"-1~abc", b"~abc", b"x~abc", b"0abc", b"00000~abc", b"\xb2~a"],
)
def test_what_names_no_other_worker_is_answered_here(session: bytes | None) -> None:
    assert asked(session) == "here"


async def test_a_session_of_another_worker_is_forwarded() -> None:
    assert await asked(b"0~abc") == "worker 0: {}"
    assert await asked(query=b"session_id=0~abc") == "worker 0: {}"
    assert asked(query=b"other=0~abc") == "here"
    assert asked(b"1~abc", query=b"session_id=0~abc") == "here"


async def test_a_session_of_a_worker_that_has_gone_is_gone_too() -> None:
    assert await asked(b"2~abc") == "rejected: 404"
