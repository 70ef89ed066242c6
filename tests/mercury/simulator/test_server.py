"""Server: who may ask, when nothing listens, and orders from another process."""

import asyncio
import gc
import warnings
from typing import Any

import pytest

from bridgehead.mercury.simulator import Fault, Faults, Simulator
from tests.mercury.simulator.raw import Raw, chat, headers
from tests.support.waiting import PATIENCE

STREAM = chat(stream=True)


async def test_nothing_listens_for_a_while_after_a_refusal(api: Simulator, raw: Raw) -> None:
    api.faults.next(Fault(kind="refused", delay=0.2))

    with pytest.raises(asyncio.IncompleteReadError):
        await raw.post(chat())
    with pytest.raises(ConnectionRefusedError):
        await raw.post(chat())
    async with asyncio.timeout(PATIENCE):
        while not await listens(raw):
            await asyncio.sleep(0.02)
    assert len(api.requests) == 2


async def listens(raw: Raw) -> bool:
    """Tell whether a request gets through."""
    try:
        return (await raw.post(chat())).status == 200
    except ConnectionRefusedError:
        return False


async def test_refusing_cuts_what_is_connected(api: Simulator, raw: Raw) -> None:
    api.faults.next(Fault(kind="endless"))
    response = await raw.post(STREAM)
    async with api.refusing():
        assert await response.closed_by_server()
        assert not await listens(raw)
    assert await listens(raw)


@pytest.mark.parametrize("turns", range(6))
async def test_a_simulator_that_ends_while_it_stops_to_listen_leaves_no_socket_open(turns: int) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        async with Simulator(faults=Faults(1.0, among=[Fault(kind="refused")])) as api:
            raw = Raw(api.port)
            asking = asyncio.create_task(raw.post(chat()))
            while not api.is_refusing:  # `until` would pause for longer than stopping takes
                await asyncio.sleep(0)
            for _ in range(turns):
                await asyncio.sleep(0)
        with pytest.raises(asyncio.IncompleteReadError):
            await asking
        await raw.http.close()
        gc.collect()

    assert [str(warning.message) for warning in caught] == []


async def test_a_simulator_that_ends_while_it_refuses_stays_closed() -> None:
    async with Simulator(faults=Faults(1.0, among=[Fault(kind="refused", delay=0.05)])) as api:
        raw = Raw(api.port)
        with pytest.raises(asyncio.IncompleteReadError):
            await raw.post(chat())
    await asyncio.sleep(0.1)

    assert not await listens(raw)
    await raw.http.close()


async def test_orders_come_over_http_too(raw: Raw) -> None:
    orders = {"next": [{"status": 500}], "always": {"status": 503}}
    assert (await raw.post(orders, "/_faults", key="")).status == 200
    ordered = [(await raw.post(chat())).status for _ in range(2)]
    assert (await raw.post({"always": None}, "/_faults")).status == 200

    assert ordered == [500, 503]
    assert (await raw.post(chat())).status == 200


async def test_a_share_of_the_requests_can_be_ordered_to_fail(raw: Raw) -> None:
    await raw.post({"rate": 1.0, "seed": 4, "among": ["402"]}, "/_faults")
    failing = (await raw.post(chat())).status
    await raw.post({"clear": True}, "/_faults")

    assert failing == 402
    assert (await raw.post(chat())).status == 200


@pytest.mark.parametrize("orders", [{"nxt": []}, {"rate": 1, "among": ["499"]}, {"next": [{"kind": "odd"}]}])
async def test_orders_that_make_no_sense_are_refused(raw: Raw, orders: Any) -> None:
    response = await raw.post(orders, "/_faults")

    assert response.status == 400
    assert "These are no orders" in (await response.json())["error"]["message"]


async def test_a_request_without_a_key_is_refused(raw: Raw) -> None:
    response = await raw.post(chat(), key="")

    assert response.status == 401


async def test_only_the_keys_that_it_is_given_are_good_and_each_gets_its_own() -> None:
    async with Simulator(keys={"sk_good": None, "sk_poor": Fault(status=402)}) as api:
        raw = Raw(api.port)
        statuses = [(await raw.post(chat(), key=key)).status for key in ("sk_good", "sk_poor", "sk_other")]
        assert api.keys is not None
        api.keys["sk_other"] = None
        statuses.append((await raw.post(chat(), key="sk_other")).status)
        await raw.http.close()

    assert statuses == [200, 402, 401, 200]
    assert [request.key for request in api.requests] == ["sk_good", "sk_poor", "sk_other", "sk_other"]


async def test_keys_may_be_a_plain_list() -> None:
    async with Simulator(keys=["sk_one"]) as api:
        raw = Raw(api.port)
        statuses = [(await raw.post(chat(), key=key)).status for key in ("sk_one", "sk_two")]
        await raw.http.close()

    assert statuses == [200, 401]


async def test_what_is_not_http_is_refused_and_the_server_lives_on(raw: Raw) -> None:
    response, _ = await raw.http.begin(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    await response.begin()

    assert response.status == 400
    assert await response.closed_by_server()
    assert (await raw.post(chat())).status == 200


async def test_requests_on_one_connection_are_answered_in_their_order(raw: Raw) -> None:
    one = raw.http.head("GET", "/v1/models", headers("k"))
    other = raw.http.head("GET", "/v1/nothing?really", {**headers("k"), "Connection": "close"})
    response, _ = await raw.http.begin(one + other)
    await response.begin()
    first = response.status
    await response.body()
    await response.begin()

    assert (first, response.status) == (200, 404)
    assert response.headers["connection"] == "close"
    assert await response.closed_by_server()
