"""Tasks of a host: known to all replicas, to their owner alone, and after a restart."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from bridgehead.commands import db
from bridgehead.host.ownership.owners import node_key
from bridgehead.mcp.features.tools import TASKS_EXTENSION
from bridgehead.mcp.tasks.record import INTERRUPTED
from tests.host.conftest import Dial
from tests.host.replicas.test_replica import next_message, replicas, sharing
from tests.support.host_command import serving
from tests.support.host_server import Host, bearer, hosting
from tests.support.http_client import Headers, HttpClient
from tests.support.http_server import JSON_POST, mirrored
from tests.support.messages import Json, encode, stateless
from tests.support.posix import KILL
from tests.support.redis_server import RedisServer
from tests.support.waiting import PATIENCE, until

CAPABILITIES: Json = {"extensions": {TASKS_EXTENSION: {}}}
UNKNOWN = -32602


async def ask(
    http: HttpClient, method: str, params: Json, *, path: str = "/mcp", headers: Headers | None = None
) -> Any:
    """Ask over a connection of its own, as a client that can take tasks; returns the whole answer."""
    message = stateless(method, params, capabilities=CAPABILITIES)
    response = await http.request(
        "POST", path, {**JSON_POST, **mirrored(message), **(headers or {})}, encode(message)
    )
    return await response.json()


async def make(http: HttpClient, **options: Any) -> str:
    answer = await ask(http, "tools/call", {"name": "alpha_wait", "arguments": {}}, **options)
    task_id: str = answer["result"]["taskId"]
    return task_id


async def get(http: HttpClient, task_id: str, **options: Any) -> Any:
    return await ask(http, "tasks/get", {"taskId": task_id}, **options)


async def reach(http: HttpClient, task_id: str, status: str) -> Any:
    async with asyncio.timeout(PATIENCE):
        while (task := (await get(http, task_id))["result"])["status"] != status:
            await asyncio.sleep(0.02)
    return task


async def test_a_task_is_known_to_its_token_alone_and_where_it_was_made(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens={"ann": {}, "eve": {}}) as host:
        ann, eve = (bearer(host.secrets[name]) for name in ("ann", "eve"))
        task_id = await make(host.http, headers=ann)
        own = await get(host.http, task_id, headers=ann)
        others = await get(host.http, task_id, headers=eve)
        cancelled = await ask(host.http, "tasks/cancel", {"taskId": task_id}, headers=eve)
        elsewhere = await get(host.http, task_id, headers=ann, path="/alpha/mcp")

        assert own["result"]["status"] == "working"
        assert [answer["error"]["code"] for answer in (others, cancelled, elsewhere)] == [UNKNOWN] * 3


async def test_the_headers_must_name_the_task_that_is_asked_for(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        task_id = await make(host.http)
        wrong = await get(host.http, task_id, headers={"Mcp-Name": "another"})
        missing = await get(host.http, task_id, headers={"Mcp-Name": None})

        assert [answer["error"]["code"] for answer in (wrong, missing)] == [-32020] * 2


async def test_tasks_are_counted(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        await make(host.http)
        task_id = await make(host.http)
        await ask(host.http, "tasks/cancel", {"taskId": task_id})
        page = (await (await host.get("/metrics")).body()).decode()

    assert 'bridgehead_tasks{status="working"} 1' in page
    assert 'bridgehead_tasks_ended_total{status="cancelled"} 1' in page


async def test_one_caller_cannot_take_the_room_of_all(tmp_path: Path, dial: Dial) -> None:
    limits = {"tasks_per_caller": 2}
    async with hosting(tmp_path, tokens={"ann": {}, "eve": {}}, limits=limits) as host:
        ann, eve = (bearer(host.secrets[name]) for name in ("ann", "eve"))
        for _ in range(2):
            await make(host.http, headers=ann)
        call = asyncio.create_task(make(dial(host.port), headers=ann))  # which stays a call
        await make(host.http, headers=eve)
        await until(lambda: len(host.far["alpha"].visitors) == 4)
        await make(host.http, headers=eve)
        is_answered = call.done()
        call.cancel()

    assert not is_answered


@pytest.mark.parametrize("number", [signal.SIGTERM, KILL])
async def test_a_task_that_a_restart_interrupts_has_failed_with_the_reason(
    tmp_path: Path, number: signal.Signals, dial: Dial
) -> None:
    with serving(tmp_path, "--bridges", "alpha") as before:
        task_id = await make(dial(before.port))
        before.end(number)
    with serving(tmp_path, "--bridges", "alpha") as after:
        task = (await get(dial(after.port), task_id))["result"]

    assert (task["status"], task["error"]["message"]) == ("failed", INTERRUPTED)


async def test_revoking_a_token_stops_its_tasks_and_a_new_one_of_the_name_does_not_see_them(
    tmp_path: Path,
) -> None:
    async with hosting(tmp_path, tokens={"ann": {}, "eve": {}}) as host:
        ann, eve = (bearer(host.secrets[name]) for name in ("ann", "eve"))
        stopped, kept = await make(host.http, headers=ann), await make(host.http, headers=eve)
        host.tokens.revoke("ann")
        await until(lambda: _ended(host))
        again = await get(host.http, stopped, headers=bearer(host.token("ann")))
        others = await get(host.http, kept, headers=eve)

    assert again["error"]["code"] == UNKNOWN
    assert others["result"]["status"] == "working"


def _ended(host: Host) -> int:
    """Tell how many tasks were cancelled."""
    return host.app._views.tasks.ended["cancelled"]  # noqa: SLF001


# --- several machines --------------------------------------------------------------------------------------


async def test_every_replica_answers_for_the_tasks_of_the_others(
    tmp_path: Path, dial: Dial, redis_server: RedisServer
) -> None:
    with replicas(tmp_path, {}, {}, **sharing(redis_server)) as hosts:
        one, other = (dial(host.port) for host in hosts)
        for here, there in ((one, other), (other, one)):
            task_id = await make(here)
            working = (await get(there, task_id))["result"]
            await ask(there, "tasks/cancel", {"taskId": task_id})
            cancelled = [(await get(http, task_id))["result"]["status"] for http in (here, there)]

            assert working["status"] == "working"
            assert cancelled == ["cancelled"] * 2


async def test_a_stream_of_one_replica_tells_of_a_task_of_another(
    tmp_path: Path, dial: Dial, redis_server: RedisServer
) -> None:
    with replicas(tmp_path, {}, {}, **sharing(redis_server)) as hosts:
        here, there = (dial(host.port) for host in hosts)
        task_id = await make(here)
        wanted = {"notifications": {"taskIds": [task_id]}}
        message = stateless("subscriptions/listen", wanted, capabilities=CAPABILITIES)
        stream = await there.request("POST", "/mcp", {**JSON_POST, **mirrored(message)}, encode(message))
        assert (await next_message(stream))["method"] == "notifications/subscriptions/acknowledged"
        first = (await next_message(stream))["params"]["status"]
        await ask(here, "tasks/cancel", {"taskId": task_id})
        then = (await next_message(stream))["params"]["status"]

    assert (first, then) == ("working", "cancelled")


async def test_without_a_database_a_task_is_lost_with_its_machine_and_that_is_said(
    tmp_path: Path, dial: Dial, redis_server: RedisServer
) -> None:
    with replicas(tmp_path, {}, {}, **sharing(redis_server)) as (owner, other):
        task_id = await make(dial(owner.port))
        owner.end()

        lost = await get(dial(other.port), task_id)

    assert lost["error"]["code"] == UNKNOWN
    assert "it was lost with the machine that ran it" in lost["error"]["message"]


async def test_with_a_database_a_task_outlives_its_machine(
    tmp_path: Path, dial: Dial, redis_server: RedisServer, database_url: str
) -> None:
    await asyncio.to_thread(db.main, ["migrate"], {"BRIDGEHEAD_DATABASE_URL": database_url})
    shared = {**sharing(redis_server), "BRIDGEHEAD_DATABASE_URL": database_url}
    with replicas(tmp_path, {}, {}, **shared) as (owner, other):
        cancelled, running = [await make(dial(owner.port)) for _ in range(2)]
        await ask(dial(owner.port), "tasks/cancel", {"taskId": cancelled})
        owner.end()

        states = [(await get(dial(other.port), task_id))["result"] for task_id in (cancelled, running)]

    assert [state["status"] for state in states] == ["cancelled", "failed"]
    assert states[1]["error"]["message"] == INTERRUPTED


async def test_a_machine_that_does_not_answer_is_waited_for_until_its_lease_is_over(
    tmp_path: Path, dial: Dial, redis_server: RedisServer
) -> None:
    with replicas(tmp_path, {}, {}, **sharing(redis_server)) as (owner, other):
        task_id = await make(dial(owner.port))
        owner.process.kill()
        owner.process.wait(PATIENCE)

        waiting = await get(dial(other.port), task_id)
        redis_server.command("DEL", node_key(task_id.partition("~")[0]))  # as it ends by itself after a while
        lost = await get(dial(other.port), task_id)

    assert "The process that runs the task does not answer" in waiting["error"]["message"]
    assert lost["error"]["code"] == UNKNOWN
