"""The inspector: a page of this machine that shows the traffic as it goes by."""

import asyncio
import json
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from bridgehead.commands.inspector import Inspector
from bridgehead.commands.traffic import Traffic
from tests.support.waiting import PATIENCE, until


def get(url: str, path: str, host: str = "") -> tuple[int, dict[str, str], str]:
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
    connection.request("GET", path, headers={"Host": host} if host else {})
    response = connection.getresponse()
    body = response.fp.readline() if path == "/events" else response.read()
    headers = {name.lower(): value for name, value in response.getheaders()}
    status = response.status
    connection.close()
    return status, headers, body.decode()


async def test_the_page_shows_text_and_asks_nobody_else() -> None:
    inspector = Inspector(Traffic())
    url = await inspector.start()
    status, headers, page = await asyncio.to_thread(get, url, "/")
    await inspector.stop()

    assert status == 200
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "textContent" in page
    assert "innerHTML" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert len(page) < 10_000


@pytest.mark.parametrize(("path", "host", "status"), [("/", "evil.example", 403), ("/other", "", 404)])
async def test_others_are_refused(path: str, host: str, status: int) -> None:
    inspector = Inspector(Traffic())
    url = await inspector.start()
    found = await asyncio.to_thread(get, url, path, host)
    await inspector.stop()

    assert found[0] == status


async def test_what_has_passed_is_sent_and_then_what_is_new() -> None:
    traffic = Traffic()
    traffic.add("client", b'{"id":1,"method":"initialize"}')
    inspector = Inspector(traffic)
    url = await inspector.start()
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(f"GET /events HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
    received = bytearray()

    async def read() -> None:
        while piece := await reader.read(4096):
            received.extend(piece)

    reading = asyncio.create_task(read())
    await until(lambda: b"initialize" in received)
    traffic.add("server", json.dumps({"id": 1, "result": {"text": "new"}}).encode())
    await until(lambda: b'"sender":"server"' in received)
    await inspector.stop()
    await asyncio.wait_for(reading, PATIENCE)
    writer.close()

    assert b"text/event-stream" in received
