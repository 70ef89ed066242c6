"""Clients: each works through operations that follow from the seed, and notes what it was answered."""

import asyncio
import random
from contextlib import suppress
from typing import Any

from tests.chaos.cluster import Cluster
from tests.chaos.history import History, Kind, Operation
from tests.support.http_client import Headers, HttpClient, Response
from tests.support.http_server import JSON_POST, mirrored
from tests.support.messages import HANDSHAKE, Json, call, encode, initialize, notification, request, stateless
from tests.support.task_client import CAPABILITIES, ENDED

OPERATION_SECONDS = 20.0
"""After this a client gives up on an operation, whose outcome is then unknown."""
CHORES = "/chores/mcp"
KINDS: tuple[Kind, ...] = ("record", "record", "record", "paid", "stream", "session", "task")
_BROKEN = (
    OSError,
    EOFError,
    asyncio.IncompleteReadError,
    asyncio.LimitOverrunError,
    ValueError,
    AssertionError,
)
_NOT_SENT = (
    "SERVICE_DOWN",
    "BUDGET_EXCEEDED",
    "CONNECTION_FAILED",
    "PRICE_UNKNOWN",
    "STORAGE",
    "UNAVAILABLE",
)


class Client:
    """One client with a token of its own, which reaches the replicas in turns, as behind a balancer."""

    def __init__(self, name: str, cluster: Cluster, history: History, seed: int) -> None:
        self.name = name
        self._cluster = cluster
        self._history = history
        self._draw = random.Random(f"{seed} {name}")  # noqa: S311
        self._token: Headers = {"Authorization": f"Bearer {cluster.tokens[name]}"}
        self._session_id = ""
        self._number = 0
        self._work = {
            "record": self._record,
            "paid": self._paid,
            "stream": self._stream,
            "session": self._in_session,
            "task": self._task,
        }

    async def run(self, stop: asyncio.Event) -> None:
        """Work until told to stop."""
        while not stop.is_set():
            self._number += 1
            kind = self._draw.choice(KINDS)
            operation = self._history.begin(self.name, kind, f"{self.name}-{self._number}")
            try:
                async with asyncio.timeout(OPERATION_SECONDS):
                    await self._work[kind](operation)
            except ConnectionRefusedError:
                self._history.end(operation, "refused", detail="no replica listens")
            except (*_BROKEN, TimeoutError) as problem:
                operation.detail = operation.detail or repr(problem)
            await asyncio.sleep(self._draw.uniform(0.01, 0.1))

    # --- operations ----------------------------------------------------------------------------------------

    async def _record(self, operation: Operation) -> None:
        run = {"day": self._draw.randint(1, 12), "phase": 1, "speed_ms": 5, "llm_name": operation.name}
        status, answer = await self._ask("/aoc/mcp", "tools/call", call("record_speed", run))
        self._finish(operation, status, answer)

    async def _paid(self, operation: Operation, tool: str = "mercury_chat_completion") -> None:
        asked = {"messages": [{"role": "user", "content": f"{operation.name}: in 8 words"}], "max_tokens": 40}
        status, answer = await self._ask("/mercury/mcp", "tools/call", call(tool, asked))
        self._finish(operation, status, answer)

    async def _stream(self, operation: Operation) -> None:
        await self._paid(operation, "mercury_chat_stream")

    async def _in_session(self, operation: Operation) -> None:
        if not self._session_id:
            status, answer = await self._post("/aoc/mcp", initialize(), self._token)
            if status != 200:
                self._finish(operation, status, answer)
                return
            done = notification("notifications/initialized")
            await self._post("/aoc/mcp", done, self._session)
        status, answer = await self._post("/aoc/mcp", request("ping", {}, self._number), self._session)
        if status == 404:  # its process is gone: a client starts again
            self._session_id = ""
        self._finish(operation, status, answer)

    @property
    def _session(self) -> Headers:
        return {**self._token, "Mcp-Session-Id": self._session_id, "MCP-Protocol-Version": HANDSHAKE}

    async def _task(self, operation: Operation) -> None:
        status, answer = await self._ask(CHORES, "tools/call", call("chore", {"name": operation.name}))
        if status != 200 or "result" not in answer or answer["result"].get("resultType") != "task":
            self._finish(operation, status, answer)
            return
        task_id = answer["result"]["taskId"]
        # Any replica answers for the task, and once it has ended, always the same.
        seen = 0
        while seen < 2:
            status, answer = await self._ask(CHORES, "tasks/get", {"taskId": task_id})
            task = answer.get("result", {}) if status == 200 else {}
            if task.get("status") in ENDED:
                seen += 1
                # A task whose process was killed reads as failed from then on.
                ended = (
                    task.get("result", {}).get("structuredContent") or task.get("result") or task["status"]
                )
                self._history.end(operation, "acknowledged", ended)
            elif status == 404 or "error" in answer:
                self._history.end(operation, "refused", detail=str(answer.get("error")))
                return
            else:
                await asyncio.sleep(0.05)

    def _finish(self, operation: Operation, status: int, answer: Json) -> None:
        """Read how an operation ended from its answer."""
        result = answer.get("result")
        if status == 200 and result is not None and not result.get("isError"):
            self._history.end(operation, "acknowledged", result.get("structuredContent", result))
            return
        words = str(answer)
        # A record is refused only if the answer says so; all else may have been stored.
        is_refused = "Nothing was stored" in words or status in {401, 429}
        is_refused |= operation.kind != "record" and any(code in words for code in _NOT_SENT)
        self._history.end(operation, "refused" if is_refused else "unknown", detail=f"{status} {words[:200]}")

    # --- requests ------------------------------------------------------------------------------------------

    async def _ask(self, path: str, method: str, params: Json) -> tuple[int, Json]:
        # Only chores may become tasks: a paid call is acknowledged by its answer alone.
        message = stateless(method, params, capabilities=CAPABILITIES if path == CHORES else None)
        return await self._post(path, message, {**mirrored(message), **self._token})

    async def _post(self, path: str, message: Json, headers: Headers) -> tuple[int, Json]:
        """Post a message to one of the replicas, and read the answer of its id."""
        ports = self._cluster.ports()
        self._draw.shuffle(ports)
        while True:
            http = HttpClient(ports.pop())
            try:
                response = await http.request("POST", path, {**JSON_POST, **headers}, encode(message))
                if "mcp-session-id" in response.headers:
                    self._session_id = response.headers["mcp-session-id"]
                answer = await self._read(response)
            except ConnectionRefusedError:  # nothing was sent: a balancer takes the next one
                if not ports:
                    raise
                continue
            finally:
                with suppress(OSError):
                    await http.close()
            if "id" in message and answer.get("id") not in {message["id"], None}:
                asked, answered = message["id"], answer["id"]
                self._history.crossed.append(f"{self.name} asked {asked} and was answered {answered}")
            return response.status, answer

    async def _read(self, response: Response) -> Any:
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            while True:
                event = await response.event()
                if event is None:
                    raise EOFError("the stream ended before its answer")
                if event.message is not None and "id" in event.message and "method" not in event.message:
                    return event.message
        return {} if response.status == 202 else await response.json()
