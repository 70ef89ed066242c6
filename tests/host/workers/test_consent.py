"""Consent: a confirmation counts once, whichever worker it comes to."""

import asyncio
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bridgehead.host.workers.consent import FILE, SharedConsent
from tests.host.conftest import Dial
from tests.host.test_command import post
from tests.support.host_command import serving
from tests.support.http_server import mirrored
from tests.support.messages import call, stateless

CAPABLE: dict[str, Any] = {"elicitation": {"form": {}}}


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[list[SharedConsent]]:
    """Three processes that share a folder, each with a connection of its own."""
    made = [SharedConsent(tmp_path, lambda: 1000.0) for _ in range(3)]
    yield made
    for one in made:
        one.close()


async def test_of_many_uses_at_once_one_is_the_first(workers: list[SharedConsent], tmp_path: Path) -> None:
    for nonce in ("a", "b"):
        uses = [worker.use(nonce, 1060.0) for worker in workers for _ in range(10)]
        assert sum(await asyncio.gather(*uses)) == 1

    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


async def test_what_has_expired_is_forgotten(workers: list[SharedConsent], tmp_path: Path) -> None:
    assert await workers[0].use("old", 999.0)
    with closing(SharedConsent(tmp_path, lambda: 2000.0)) as later:
        assert await later.use("new", 2060.0)

    assert await workers[1].use("old", 999.0), "it would be refused by its date"


async def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database, but long enough to be looked at as if it were one" * 100)

    assert not await SharedConsent(tmp_path, lambda: 0.0).use("a", 60.0)


async def test_a_confirmation_is_taken_by_one_worker_only(tmp_path: Path, dial: Dial) -> None:
    with serving(tmp_path, "--bridges", "slow", "--workers", "2", workers=2) as host:

        async def ask(more: dict[str, Any]) -> Any:
            params = {**call("slow_erase", {"text": "x"}), **more}
            message = stateless("tools/call", params, capabilities=CAPABLE)
            body = await (await post(dial(host.port), message, mirrored(message))).body()
            return msgspec.json.decode(body)

        asked = (await ask({}))["result"]
        answer = {"elicitation": {"action": "accept", "content": {"text": "yes"}}}
        again = {"requestState": asked["requestState"], "inputResponses": answer}
        answers = [await ask(again) for _ in range(12)]  # connections go to either worker

    assert sum("result" in one for one in answers) == 1
    assert {one["error"]["message"] for one in answers if "error" in one} == {
        "requestState is refused: it was answered already; make the request again from the start"
    }
