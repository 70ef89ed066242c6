"""A client of the simulated API that sees what is on the wire, and the requests that tests make most."""

from typing import Any

import msgspec

from tests.support.http_client import Headers, HttpClient, Response

KEY = "sk_test"


def chat(said: str = "What is a bridge?", **more: Any) -> dict[str, Any]:
    """Make the body of a chat request."""
    return {"model": "mercury-2", "messages": [{"role": "user", "content": said}], **more}


class Raw:
    """Sends JSON and reads whatever comes."""

    def __init__(self, port: int) -> None:
        self.http = HttpClient(port)

    async def post(self, body: Any, path: str = "/v1/chat/completions", key: str = KEY) -> Response:
        """POST a body as JSON, or bytes as they are, and read the head of the response."""
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return await self.http.request("POST", path, headers(key), data)

    async def get(self, path: str, key: str = KEY) -> Response:
        """GET a path."""
        return await self.http.request("GET", path, headers(key))


def headers(key: str) -> Headers:
    """Make the headers of a request; an empty key leaves its header out."""
    return {
        "Content-Type": "application/json",
        "Authorization": f"Bearer {key}" if key else None,
    }


def events(body: bytes) -> list[Any]:
    """Decode the events of a stream; the word at the end stays a word."""
    found = []
    for block in body.split(b"\n\n"):
        if block:
            data = block.removeprefix(b"data: ")
            found.append("[DONE]" if data == b"[DONE]" else msgspec.json.decode(data))
    return found


def content(chunks: list[Any]) -> list[str]:
    """Take the pieces of text out of the chunks of a chat."""
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk != "[DONE]" and chunk["choices"]]
    return [delta["content"] for delta in deltas if delta.get("content")]


async def refused(raw: Raw, body: Any, path: str = "/v1/chat/completions") -> tuple[int, dict[str, Any]]:
    """Ask for something that is refused, and return the status and the error."""
    response = await raw.post(body, path)
    error: dict[str, Any] = (await response.json())["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return response.status, error
