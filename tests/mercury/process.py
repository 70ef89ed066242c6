"""The mercury bridge as a real process over stdio, and an asynchronous client whose every message is judged.

Beside a simulated API in the test's own loop, so that a test sees both ends.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any

from tests.support import constants, waiting
from tests.support.messages import Checker, Json, call, cancelled, encode, initialize, notification, request
from tests.support.redis_server import RedisServer

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk_test_0123456789abcdef"
MODEL = "mercury-2"
PATIENCE = waiting.PATIENCE
_OURS = (
    *("MERCURY_", "MCP_", "LOG_", "CACHE_", "RATE_LIMIT_", "REQUEST_TIMEOUT", "MAX_REQUEST", "BRIDGEHEAD_"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
)
"""How the names of variables begin that a test sets itself."""
BREAKER_FAILURES = "bridgehead.mercury.calling.provider:BREAKER_FAILURES"
BREAKER_SECONDS = "bridgehead.mercury.calling.provider:BREAKER_SECONDS"
HEARTBEAT_SECONDS = "bridgehead.mercury.tools.progress:HEARTBEAT_SECONDS"
MAX_RESPONSE_BYTES = "bridgehead.mercury.api.client:MAX_RESPONSE_BYTES"
CONNECT_SECONDS = "bridgehead.mercury.api.client:CONNECT_SECONDS"
CACHE_MAX_BYTES = "bridgehead.mercury.calling.cache:MAX_BYTES"
REDIS_SECONDS = "bridgehead.runtime.stores:REDIS_SECONDS"
LARGEST = 64 * 1024 * 1024


def environment(url: str, state: Path, **settings: str) -> dict[str, str]:
    """Give an environment with nothing of ours in it but what a test says, constants (`module:NAME`) too."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(_OURS)}
    ours = {
        "MERCURY_API_URL": url,
        "MERCURY_API_KEY": KEY,
        "MERCURY_MODEL": MODEL,
        "MERCURY_FIM_MODEL": "mercury-edit-2",
        "MERCURY_EDIT_MODEL": "mercury-edit-2",
        "BRIDGEHEAD_STATE_DIR": str(state),
        "MERCURY_RETRY_DELAY": "5",
        BREAKER_FAILURES: "1000000",
        "RATE_LIMIT_MAX": "0",
        "RATE_LIMIT_SERVER_MAX": "0",
    }
    return {**kept, **constants.split({name: value for name, value in {**ours, **settings}.items() if value})}


class BridgeProcess:
    """One process, and what it says."""

    def __init__(self, process: asyncio.subprocess.Process, errors: Path) -> None:
        self.process = process
        self.errors = errors
        self.notifications: list[Json] = []
        self.said: list[bytes] = []
        """Every line that the process wrote."""
        self._checker = Checker()
        self._answers: dict[Any, asyncio.Future[Json]] = {}
        self._reading = asyncio.create_task(self._read())
        self._noticed = asyncio.Event()

    async def _read(self) -> None:
        assert self.process.stdout is not None
        # A process that is killed may leave half a line.
        while (line := await self.process.stdout.readline()).endswith(b"\n"):
            self.said.append(line)
            message = json.loads(line)
            self._checker.check(message)
            if "method" in message:
                self.notifications.append(message)
                self._noticed.set()
            elif message["id"] in self._answers:
                self._answers.pop(message["id"]).set_result(message)

    def send(self, message: Json) -> None:
        """Write a message."""
        assert self.process.stdin is not None
        self._checker.note_requests(message)
        self.process.stdin.write(encode(message) + b"\n")

    def start(
        self, tool: str, arguments: Json | None = None, *, progress: int | None = None
    ) -> tuple[Any, asyncio.Future[Json]]:
        """Call a tool without waiting; give the request's id and what its answer will be."""
        return self._start(request("tools/call", call(tool, arguments, progress=progress)))

    def _start(self, message: Json) -> tuple[Any, asyncio.Future[Json]]:
        answer = asyncio.get_running_loop().create_future()
        self._answers[message["id"]] = answer
        self.send(message)
        return message["id"], answer

    def cancel(self, request_id: Any) -> None:
        """Cancel a request, for which no answer comes then."""
        self._answers.pop(request_id, None)
        self.send(cancelled(request_id))

    async def request(self, method: str, params: Json | None = None) -> Json:
        """Send a request and wait for its result."""
        _, answer = self._start(request(method, params))
        message = await asyncio.wait_for(answer, PATIENCE)
        result: Json = message["result"]
        return result

    async def call(self, tool: str, arguments: Json | None = None, *, progress: int | None = None) -> Json:
        """Call a tool and wait for its result."""
        _, answer = self.start(tool, arguments, progress=progress)
        result: Json = (await asyncio.wait_for(answer, PATIENCE))["result"]
        return result

    async def error(self, tool: str, arguments: Json | None = None) -> Json:
        """Call a tool that fails and give the error."""
        return error_of(await self.call(tool, arguments))

    async def progress_until(self, count: int) -> list[Json]:
        """Wait until this many progress notifications have come."""
        async with asyncio.timeout(PATIENCE):
            while len(self.progress()) < count:
                self._noticed.clear()
                await self._noticed.wait()
        return self.progress()

    def progress(self) -> list[Json]:
        """Give the parameters of every progress notification so far."""
        return [m["params"] for m in self.notifications if m["method"] == "notifications/progress"]

    async def shake_hands(self) -> None:
        """Begin the session."""
        _, answer = self._start(initialize())
        await asyncio.wait_for(answer, PATIENCE)
        self.send(notification("notifications/initialized"))

    async def end(self) -> int:
        """Close its input, read what it still says, and give the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = await asyncio.wait_for(self.process.wait(), PATIENCE)
        await asyncio.wait_for(self._reading, PATIENCE)
        return code

    async def kill(self) -> None:
        """End it at once (SIGKILL); what it has not answered is cancelled."""
        assert self.process.stdin is not None
        if self.process.returncode is None:
            self.process.kill()
        await asyncio.wait_for(self.process.wait(), PATIENCE)
        self.process.stdin.close()
        await asyncio.wait_for(self._reading, PATIENCE)
        for answer in self._answers.values():
            answer.cancel()

    def log(self) -> list[Json]:
        """Give the lines of its log, which are JSON by default."""
        return [json.loads(line) for line in self.errors.read_text(encoding="utf-8").splitlines()]

    def has_logged(self, event: str) -> bool:
        """Tell whether something is in the log."""
        return any(line["event"] == event for line in self.log())


def error_of(result: Json) -> Json:
    """Read the error in a result that is one."""
    assert result["isError"], result
    block, *money = result["content"]
    assert all(told["text"].startswith(("Cost: ", "Up to ", "Left of ")) for told in money)
    body = json.loads(block["text"])
    assert set(body) == {"error"}
    error: Json = body["error"]
    assert {"type", "message", "code"} <= set(error), error
    assert error["type"] in ("validation_error", "api_error", "rate_limit", "auth_error")
    return error


async def started(
    variables: dict[str, str], stderr: IO[bytes] | int, limit: int
) -> asyncio.subprocess.Process:
    """Start the bridge as a process; `limit` is how much of its output is read ahead."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.support.constants",
        "mercury",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
        env=variables,
        cwd=ROOT,
        limit=limit,
    )


@asynccontextmanager
async def bridge_process(url: str, folder: Path, **settings: str) -> AsyncIterator[BridgeProcess]:
    """Run the bridge against an API, with its state and its log in a folder; empty settings are left out."""
    errors = folder / "stderr"
    with errors.open("ab") as stderr:
        process = await started(environment(url, folder / "state", **settings), stderr, LARGEST)
    client = BridgeProcess(process, errors)
    try:
        await client.shake_hands()
        yield client
    finally:
        if process.returncode is None:
            assert await client.end() == 0


# --- replicas ----------------------------------------------------------------------------------------------


def sharing(server: RedisServer) -> dict[str, str]:
    """Make the settings of replicas that share a Redis, on a machine that may be busy."""
    return {"BRIDGEHEAD_REDIS_URL": server.url, REDIS_SECONDS: "5"}


@asynccontextmanager
async def two_replicas(
    url: str, folder: Path, **settings: str
) -> AsyncIterator[tuple[BridgeProcess, BridgeProcess]]:
    """Run the bridge twice, each with a folder of its own."""
    for name in ("one", "other"):
        (folder / name).mkdir()
    async with (
        bridge_process(url, folder / "one", **settings) as one,
        bridge_process(url, folder / "other", **settings) as other,
    ):
        yield one, other


async def command(url: str, folder: Path, *arguments: str, **settings: str) -> tuple[int, str, str]:
    """Run `bridgehead mercury …`, and return its status and what it said."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.support.constants",
        "mercury",
        *arguments,
        env={**environment(url, folder, **settings), "COLUMNS": "200", "PYTHONIOENCODING": "utf-8"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert process.returncode is not None
    shown, wrong = (said.decode().replace("\r\n", "\n") for said in (out, err))
    return process.returncode, shown, wrong
