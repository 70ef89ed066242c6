"""Exchange: a client that goes or does not read is noticed, and its request ends or waits."""

import asyncio
import socket
import time

from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.simulator.raw import Raw, chat, headers
from tests.support import mercury_journal
from tests.support.messages import encode
from tests.support.waiting import PATIENCE

PATH = "/v1/chat/completions"


async def test_a_client_that_hangs_up_is_noted(api: Simulator, raw: Raw) -> None:
    api.faults.next(Fault(delay=30))
    head = raw.http.head("POST", PATH, {**headers("k"), "Content-Length": "0"})
    _, writer = await raw.http.begin(head)
    await mercury_journal.until(api.requests, len)
    hung_up = time.monotonic()
    writer.close()
    await mercury_journal.until(api.requests, lambda requests: requests[0].aborted)

    assert api.requests[0].aborted is not None
    assert api.requests[0].aborted - hung_up >= 0


async def test_a_client_that_does_not_read_stops_the_stream(api: Simulator, raw: Raw) -> None:
    api.faults.next(Fault(kind="endless", chunk_delay=0.0))
    body = encode(chat(stream=True))
    with socket.create_connection(("127.0.0.1", api.port)) as client:
        client.sendall(raw.http.head("POST", PATH, {**headers("k"), "Content-Length": str(len(body))}) + body)
        seen = -1
        async with asyncio.timeout(PATIENCE):
            while seen < 1 or seen != api.requests[0].chunks:
                seen = api.requests[0].chunks if len(api.requests) else -1
                await asyncio.sleep(0.1)

        assert (api.requests[0].finished, api.requests[0].aborted) == (None, None)
    await mercury_journal.until(api.requests, lambda requests: requests[0].aborted)
