"""Replicas: several hosts, each a process of its own, that a client cannot tell from one."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.host.conftest import Dial
from tests.support.host_command import Command, add_token, serving
from tests.support.http_client import Headers, HttpClient, Response
from tests.support.http_server import JSON_POST, mirrored
from tests.support.messages import HANDSHAKE, call, encode, initialize, notification, request, stateless, text
from tests.support.ports import free_port
from tests.support.redis_server import RedisServer, running_redis
from tests.support.waiting import PATIENCE

OLD, NEW = "the-old-key-of-these-replicas-0123", "the-new-key-of-these-replicas-0123"
FORM: dict[str, Any] = {"elicitation": {"form": {}}}


def sharing(server: RedisServer) -> dict[str, str]:
    """Make the settings of replicas that share a Redis, on a machine that may be busy."""
    return {
        "BRIDGEHEAD_BRIDGES": "alpha",
        "BRIDGEHEAD_REDIS_URL": server.url,
        "bridgehead.runtime.stores:REDIS_SECONDS": "5",
        "BRIDGEHEAD_STATE_KEYS": OLD,
    }


@contextmanager
def replicas(folder: Path, *environments: dict[str, Any], **shared: Any) -> Iterator[list[Command]]:
    """Run a host for each environment, each with a state directory of its own."""
    with ExitStack() as stack:
        hosts = []
        for number, own in enumerate(environments):
            state = folder / str(number)
            state.mkdir()
            hosts.append(stack.enter_context(serving(state, **shared, **own)))
        yield hosts


async def post(http: HttpClient, message: Any, **headers: str) -> Any:
    response = await http.request(
        "POST", "/mcp", {**JSON_POST, **mirrored(message), **headers}, encode(message)
    )
    return await response.json()


def asking(state: str | None = None) -> Any:
    params: dict[str, Any] = call("slow_ask", {"text": "Who?"})
    if state is not None:
        answer = {"action": "accept", "content": {"name": "Ada"}}
        params |= {"requestState": state, "inputResponses": {"elicitation": answer}}
    return stateless("tools/call", params, capabilities=FORM)


async def test_keys_rotate_while_questions_are_open(tmp_path: Path, dial: Dial) -> None:
    lists = [{"BRIDGEHEAD_STATE_KEYS": keys} for keys in (OLD, f"{NEW},{OLD}", NEW)]
    with replicas(tmp_path, *lists, BRIDGEHEAD_BRIDGES="slow") as hosts:
        old, both, new = (dial(host.port) for host in hosts)
        by_old = (await post(old, asking()))["result"]["requestState"]
        by_both = (await post(both, asking()))["result"]["requestState"]

        assert "Ada" in str(await post(both, asking(by_old)))
        assert "Ada" in str(await post(new, asking(by_both)))
        refused = await post(new, asking((await post(old, asking()))["result"]["requestState"]))

    assert "was not made by this server" in refused["error"]["message"]


async def test_without_keys_each_process_has_its_own(tmp_path: Path, dial: Dial) -> None:
    with replicas(tmp_path, {}, {}, BRIDGEHEAD_BRIDGES="slow") as hosts:
        one, other = (dial(host.port) for host in hosts)
        state = (await post(one, asking()))["result"]["requestState"]

        assert "was not made by this server" in (await post(other, asking(state)))["error"]["message"]
        assert "Ada" in str(await post(one, asking(state)))


async def shake_hands(http: HttpClient) -> Headers:
    """Open a session of an older revision, and return the headers of everything that follows."""
    response = await http.request("POST", "/mcp", JSON_POST, encode(initialize()))
    assert response.status == 200, await response.body()
    own = {
        **JSON_POST,
        "Mcp-Session-Id": response.headers["mcp-session-id"],
        "Mcp-Protocol-Version": HANDSHAKE,
    }
    done = await http.request("POST", "/mcp", own, encode(notification("notifications/initialized")))
    assert done.status == 202
    return own


async def in_session(http: HttpClient, own: Headers, tool: str = "alpha_echo") -> Response:
    return await http.request("POST", "/mcp", own, encode(request("tools/call", call(tool, {"text": "hi"}))))


async def test_a_session_of_one_replica_is_served_by_all(
    tmp_path: Path, dial: Dial, redis_server: RedisServer
) -> None:
    shared = sharing(redis_server)
    with replicas(tmp_path, {}, {}, **shared) as hosts:
        one, other = (dial(host.port) for host in hosts)
        for first, second in ((one, other), (other, one)):
            own = await shake_hands(first)
            for _ in range(4):
                answer = await in_session(second, own)
                assert text(await answer.json()) == "hi"
            listening = await second.request("GET", "/mcp", {**own, "Accept": "text/event-stream"})
            assert listening.status == 200
            assert (await second.request("DELETE", "/mcp", own)).status == 204
            assert (await in_session(first, own)).status == 404


async def test_when_its_replica_dies_a_session_is_gone_at_once(
    tmp_path: Path, dial: Dial, redis_server: RedisServer
) -> None:
    with replicas(tmp_path, {}, {}, **sharing(redis_server)) as (owner, other):
        own = await shake_hands(dial(owner.port))
        assert (await in_session(dial(other.port), own)).status == 200
        owner.process.kill()
        owner.process.wait(PATIENCE)

        answer = await in_session(dial(other.port), own)

        assert answer.status == 404
        assert "start again with initialize" in (await answer.json())["error"]["message"]


async def test_when_its_replica_comes_back_at_the_same_address_a_session_is_gone_at_once(
    tmp_path: Path, dial: Dial, redis_server: RedisServer
) -> None:
    """As a container does that is started again: its address stays, its sessions do not."""
    fixed = {"BRIDGEHEAD_REPLICA_ADDRESS": f"127.0.0.1:{free_port()}"}
    shared = sharing(redis_server)
    (tmp_path / "again").mkdir()
    with replicas(tmp_path, fixed, {}, **shared) as (owner, other):
        own = await shake_hands(dial(owner.port))
        assert (await in_session(dial(other.port), own)).status == 200
        owner.end()
        with serving(tmp_path / "again", settings={**shared, **fixed}) as restarted:
            answer = await in_session(dial(other.port), own)
            fresh = await shake_hands(dial(restarted.port))

            assert answer.status == 404
            assert "start again with initialize" in (await answer.json())["error"]["message"]
            assert (await in_session(dial(other.port), fresh)).status == 200


async def test_a_call_under_way_when_its_replica_dies_is_answered_as_gone(
    tmp_path: Path, dial: Dial, redis_server: RedisServer
) -> None:
    with replicas(tmp_path, {}, {}, **sharing(redis_server)) as (owner, other):
        own = await shake_hands(dial(owner.port))
        waiting = asyncio.create_task(in_session(dial(other.port), own, "alpha_soon"))
        await asyncio.to_thread(owner.wait_for, "alpha_soon has begun")
        owner.process.kill()

        assert (await waiting).status == 404


async def test_without_redis_sessions_go_on_where_their_owner_is_known(tmp_path: Path, dial: Dial) -> None:
    with running_redis(tmp_path) as server, replicas(tmp_path, {}, {}, **sharing(server)) as (one, other):
        known, unknown = await shake_hands(dial(one.port)), await shake_hands(dial(other.port))
        assert (await in_session(dial(other.port), known)).status == 200
        server.kill()
        await asyncio.to_thread(one.wait_for, "redis cannot be used")

        assert (await in_session(dial(other.port), known)).status == 200
        answer = await in_session(dial(one.port), unknown)
        assert answer.status == 503
        assert answer.headers["retry-after"] == "1"


async def test_a_stranger_at_the_door_is_turned_away(
    tmp_path: Path, dial: Dial, redis_server: RedisServer
) -> None:
    with replicas(tmp_path, {}, **sharing(redis_server)) as (host,):
        keys = redis_server.command("KEYS", "bridgehead:node:*").decode().split("\r\n")
        address = (
            redis_server.command("GET", next(key for key in keys if ":" in key)).decode().split("\r\n")[1]
        )

        port = address.split()[0].rpartition(":")[2]  # a signature follows
        answer = await dial(int(port)).request("GET", "/metrics")

        assert answer.status == 403
        assert host.process.poll() is None


async def test_a_change_in_one_replica_is_told_by_the_other(
    tmp_path: Path, dial: Dial, redis_server: RedisServer
) -> None:
    with replicas(tmp_path, {}, {}, **sharing(redis_server)) as (one, other):
        wanted = {"notifications": {"resourceSubscriptions": ["alpha://note"]}}
        message = stateless("subscriptions/listen", wanted)
        stream = await dial(other.port).request(
            "POST", "/mcp", {**JSON_POST, **mirrored(message)}, encode(message)
        )
        assert (await next_message(stream))["method"] == "notifications/subscriptions/acknowledged"

        await post(dial(one.port), stateless("tools/call", call("alpha_write", {"text": "x"})))

        told = await next_message(stream)
        assert (told["method"], told["params"]["uri"]) == ("notifications/resources/updated", "alpha://note")


async def next_message(stream: Response) -> Any:
    """Return the next message of a stream; what only keeps it open is passed over."""
    while (event := await stream.event()) is not None:
        if not event.is_comment:
            return event.message
    raise AssertionError("The stream has ended.")


async def test_a_token_has_one_limit_over_all_replicas(
    tmp_path: Path, dial: Dial, redis_server: RedisServer
) -> None:
    limit = 30
    token = add_token(tmp_path / "tokens", "ada", per_minute=limit)
    file = str(tmp_path / "tokens" / "host" / "tokens.json")
    with replicas(tmp_path, {}, {}, BRIDGEHEAD_TOKENS_FILE=file, **sharing(redis_server)) as hosts:
        https = [dial(host.port) for host in hosts]
        own = {**JSON_POST, "Authorization": f"Bearer {token}"}
        started = time.monotonic()
        message = stateless("tools/call", call("alpha_echo", {"text": "hi"}))
        answers = [
            await http.request("POST", "/mcp", {**own, **mirrored(message)}, encode(message))
            for _ in range(limit)
            for http in https
        ]
        refilled = (time.monotonic() - started) * limit / 60

    statuses = [answer.status for answer in answers]
    assert set(statuses) == {200, 429}
    assert limit - 2 <= statuses.count(200) <= limit + 2 + refilled
    assert int(answers[-1].headers["retry-after"]) >= 1


AHEAD = {"FAKETIME": "+240s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


@pytest.fixture
def library() -> str:
    """What gives a process another clock than the machine's."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    if not found:
        pytest.skip("needs Debian's libfaketime")
    return str(found[0])


async def test_replicas_whose_clocks_differ_by_minutes_behave_as_one(
    tmp_path: Path, dial: Dial, redis_server: RedisServer, library: str
) -> None:
    shared = {**sharing(redis_server), "BRIDGEHEAD_BRIDGES": "alpha,slow"}
    with replicas(tmp_path, {}, {**AHEAD, "LD_PRELOAD": library}, **shared) as hosts:
        for first, second in (hosts, hosts[::-1]):
            here, there = dial(first.port), dial(second.port)
            own = await shake_hands(here)
            assert text(await (await in_session(there, own)).json()) == "hi"
            state = (await post(here, asking()))["result"]["requestState"]
            assert "Ada" in str(await post(there, asking(state)))
            assert "answered already" in (await post(here, asking(state)))["error"]["message"]


async def test_readiness_tells_how_redis_is_and_does_not_fail_for_it(tmp_path: Path, dial: Dial) -> None:
    with running_redis(tmp_path) as server, replicas(tmp_path, {}, **sharing(server)) as (host,):
        page = await (await dial(host.port).request("GET", "/readyz")).json()
        assert (page["status"], page["stores"]["redis"]) == ("ready", {"up": True})
        server.kill()
        await asyncio.to_thread(host.wait_for, "redis cannot be used")

        answer = await dial(host.port).request("GET", "/readyz")
        page = await answer.json()
        metrics = (await (await dial(host.port).request("GET", "/metrics")).body()).decode()

        assert (answer.status, page["status"], page["stores"]["redis"]["up"]) == (200, "degraded", False)
        assert "cannot be reached" in page["stores"]["redis"]["says"]
        assert "\nbridgehead_redis_up 0" in metrics
        assert 'bridgehead_redis_failures_total{reason="gone"}' in metrics
        server.start()
        await asyncio.to_thread(host.wait_for, "redis is up")
        assert (await (await dial(host.port).request("GET", "/readyz")).json())["status"] == "ready"


async def test_a_confirmation_counts_once_over_all_replicas(
    tmp_path: Path, dial: Dial, redis_server: RedisServer
) -> None:
    shared = {**sharing(redis_server), "BRIDGEHEAD_BRIDGES": "slow"}
    with replicas(tmp_path, {}, {}, **shared) as hosts:
        one, other = (dial(host.port) for host in hosts)
        state = (await post(one, asking()))["result"]["requestState"]

        assert "Ada" in str(await post(other, asking(state)))
        assert "answered already" in (await post(one, asking(state)))["error"]["message"]
