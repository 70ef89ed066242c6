"""The direct ways: the same HTTP clients that the servers use, straight to the upstream, in this process.

What a server adds is counted from here, so a server is not blamed for its HTTP client.
"""

import asyncio
import json
import time
from abc import ABC, abstractmethod
from typing import Any

import httpx2
from pyreqwest.client import Client, ClientBuilder

from bench.mercury.upstream import KEY, asked
from bench.message import WrongAnswer


class DirectWay(ABC):
    """A client in an event loop of its own."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/chat/completions"
        self._runner = asyncio.Runner()

    def chat(self, words: int) -> float:
        """Make one call and return the seconds that it took."""
        return self._runner.run(self._chat(words))

    def first_token(self, words: int) -> float:
        """Make one streamed call and return the seconds until something of the answer was there."""
        return self._runner.run(self._first_token(words))

    def close(self) -> None:
        """Close the client and its loop."""
        self._runner.run(self._close())
        self._runner.close()

    async def _chat(self, words: int) -> float:
        begin = time.perf_counter()
        answer = await self._post(asked(words))
        seconds = time.perf_counter() - begin
        if len(answer["choices"][0]["message"]["content"].split()) != words:
            raise WrongAnswer(f"not the answer that was asked for: {answer}")
        return seconds

    @abstractmethod
    async def _post(self, body: dict[str, Any]) -> Any:
        """Post a request and decode its answer."""

    @abstractmethod
    async def _first_token(self, words: int) -> float:
        """Stream an answer and say when its first word came."""

    @abstractmethod
    async def _close(self) -> None:
        """Close the client."""


def _has_text(data: bytes) -> bool:
    return data.count(b'"content":"') > data.count(b'"content":""')


class Pyreqwest(DirectWay):
    """The client of the bridge."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
        self._client: Client = ClientBuilder().default_headers(headers).build()

    async def _post(self, body: dict[str, Any]) -> Any:
        response = await self._client.post(self._url).body_bytes(json.dumps(body).encode()).build().send()
        return json.loads(bytes(await response.bytes()))

    async def _first_token(self, words: int) -> float:
        body = json.dumps({**asked(words), "stream": True}).encode()
        begin = time.perf_counter()
        request = self._client.post(self._url).body_bytes(body).streamed_read_buffer_limit(0).build_streamed()
        async with request as response:
            data, seconds = b"", 0.0
            while chunk := await response.body_reader.read_chunk():
                data += bytes(chunk)
                if not seconds and _has_text(data):
                    seconds = time.perf_counter() - begin
        return seconds

    async def _close(self) -> None:
        await self._client.close()


class Httpx2(DirectWay):
    """The client of the tool on the official SDK."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}, timeout=60)

    async def _post(self, body: dict[str, Any]) -> Any:
        return (await self._client.post(self._url, json=body)).json()

    async def _first_token(self, words: int) -> float:
        begin = time.perf_counter()
        data, seconds = b"", 0.0
        body = {**asked(words), "stream": True}
        async with self._client.stream("POST", self._url, json=body) as response:
            async for chunk in response.aiter_bytes():
                data += chunk
                if not seconds and _has_text(data):
                    seconds = time.perf_counter() - begin
        return seconds

    async def _close(self) -> None:
        await self._client.aclose()
