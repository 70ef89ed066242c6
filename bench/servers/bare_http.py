"""The floor for HTTP: a coroutine that decodes the body and encodes an answer, on the same server."""

import sys

import msgspec

from bridgehead.mcp.http.message import Request, Response
from bridgehead.mcp.http.server import listen, serve
from bridgehead.mcp.process import run_to_end, socket_loop

decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode


class App:
    """Answers any request with the text found in it."""

    async def __call__(self, request: Request) -> Response:
        """Answer one request, in a task of its own as every peer does."""
        body = b""
        while piece := await request.read():
            body += piece
        message = decode(body)
        text = message.get("params", {}).get("arguments", {}).get("text", "")
        result = {"content": [{"type": "text", "text": text}]}
        return Response.json(encode({"jsonrpc": "2.0", "id": message.get("id"), "result": result}))

    async def start(self) -> None:
        """Nothing is held open."""

    def end_streams(self) -> None:
        """There are none."""

    async def stop(self) -> None:
        """Nothing was held open."""


if __name__ == "__main__":
    run_to_end(serve(App(), listen("127.0.0.1", int(sys.argv[2]))), socket_loop, 1)
