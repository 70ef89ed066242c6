"""The direct ways: the same HTTP clients that the servers use, straight to the upstream, in this process.

What a server adds is counted from here, so a server is not blamed for its HTTP client.
"""

import asyncio
import json
import time
from abc import ABC, abstractmethod
from typing import Any

import httpx2

from bench.mercury.upstream import KEY, asked
from bench.message import WrongAnswer
from bridgehead.runtime.http import Exchange, Pool

SECONDS = 60.0


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


class OwnPool(DirectWay):
    """The HTTP client of the bridge."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._headers = (("Authorization", f"Bearer {KEY}"), ("Content-Type", "application/json"))
        self._pool = self._runner.run(self._made(url))

    @staticmethod
    async def _made(url: str) -> Pool:
        return Pool(url, connect_seconds=SECONDS)

    def _request(self, body: dict[str, Any]) -> Exchange:
        return self._pool.request("POST", "/chat/completions", self._headers, json.dumps(body).encode())

    async def _post(self, body: dict[str, Any]) -> Any:
        data = b""
        async with self._request(body) as response:
            while piece := await response.read(SECONDS):
                data += piece
        return json.loads(data)

    async def _first_token(self, words: int) -> float:
        begin = time.perf_counter()
        data, seconds = b"", 0.0
        async with self._request({**asked(words), "stream": True}) as response:
            while piece := await response.read(SECONDS):
                data += piece
                if not seconds and _has_text(data):
                    seconds = time.perf_counter() - begin
        return seconds

    async def _close(self) -> None:
        await self._pool.close()


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
