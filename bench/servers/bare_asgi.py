"""The floor for HTTP: an ASGI function that decodes the body and encodes an answer, on the same server."""

import sys

import msgspec

from bridgehead.mcp.http.exchange import Receive, Scope, Send
from bridgehead.mcp.http.server import bound, serve
from bridgehead.mcp.process import run_to_end, socket_loop

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


async def app(scope: Scope, receive: Receive, send: Send) -> None:
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
    run_to_end(serve(app, bound("127.0.0.1", int(sys.argv[2]))), socket_loop, 1)
