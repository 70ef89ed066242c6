"""The floor for HTTP: an ASGI function that decodes the body and encodes an answer, on the same server."""

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import uvicorn

from bridgehead.mcp.http.protocol import Http1Protocol

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode


async def body_of(receive: Receive) -> bytes:
    """Collect the whole request body."""
    event = await receive()
    body: bytes = event["body"]
    while event["more_body"]:
        event = await receive()
        body += event["body"]
    return body


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Answer any request with the text found in it."""
    message = decode(await body_of(receive))
    text = message.get("params", {}).get("arguments", {}).get("text", "")
    answer = encode(
        {
            "jsonrpc": "2.0",
            "id": message.get("id"),
            "result": {"content": [{"type": "text", "text": text}]},
        }
    )
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(answer)),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


if __name__ == "__main__":
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[2]),
        http=Http1Protocol,
        ws="none",
        loop="uvloop",
        lifespan="off",
        log_level="warning",
        access_log=False,
    )
