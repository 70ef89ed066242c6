"""The way through an MCP server over stdio: writes calls, reads results, and counts what came in between."""

import json
import os
import time
from typing import Any

from bench import stdio
from bench.mercury.upstream import asked
from bench.message import FIRST_ID, WrongAnswer, check
from bench.process import NotRunning, Process

CHAT = "mercury_chat_completion"
STREAM = "mercury_chat_stream"
LIMIT = 300.0


class McpWay:
    """A client of one MCP server process."""

    def __init__(self, process: Process, **more: Any) -> None:
        self._process = process
        self._more = more
        self._last_id = 0
        self._out = os.fdopen(process.stdout, "rb", buffering=1 << 16, closefd=False)

    def start(self) -> None:
        """Do the handshake."""
        stdio.initialize(self._process)

    def chat(self, words: int) -> float:
        """Make one call and return the seconds that it took."""
        line = self._call(CHAT, words)
        begin = time.perf_counter()
        os.write(self._process.stdin, line)
        answer = self._line()
        seconds = time.perf_counter() - begin
        _check(json.loads(answer), words)
        return seconds

    def first_token(self, words: int) -> float:
        """Make one streamed call and return the seconds until something of the answer was there."""
        line = self._call(STREAM, words)
        begin = time.perf_counter()
        os.write(self._process.stdin, line)
        answer = self._line()
        seconds = time.perf_counter() - begin
        if b"notifications/progress" not in answer:
            raise WrongAnswer(f"no progress came first: {answer[:300]!r}")
        self._results(1, words)
        return seconds

    def streams(self, count: int, words: int) -> float:
        """Make streamed calls at once and return the seconds until the last one was answered."""
        lines = b"".join(self._call(STREAM, words) for _ in range(count))
        begin = time.perf_counter()
        os.write(self._process.stdin, lines)
        self._results(count, words)
        return time.perf_counter() - begin

    def memory(self) -> float:
        """Return the resident memory of the server, in MB."""
        return self._process.memory()

    def _results(self, count: int, words: int) -> None:
        with self._process.within(LIMIT):
            while count:
                line = self._line()
                if b'"method":"notifications/progress"' not in line:
                    _check(json.loads(line), words)
                    count -= 1

    def _call(self, tool: str, words: int) -> bytes:
        self._last_id += 1
        params: dict[str, Any] = {"name": tool, "arguments": {**asked(words), **self._more}}
        if tool == STREAM:
            params["_meta"] = {"progressToken": self._last_id}
        call = {"jsonrpc": "2.0", "id": self._last_id, "method": "tools/call", "params": params}
        return json.dumps(call).encode() + b"\n"

    def _line(self) -> bytes:
        line = self._out.readline()
        if not line:
            raise NotRunning(self._process.complaint())
        return line


class EchoWay:
    """A client of an echo server, for comparison: the least that the engine can be asked."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._last_id = FIRST_ID

    def start(self) -> None:
        """Do the handshake."""
        stdio.initialize(self._process)

    def chat(self, words: int) -> float:
        """Make one call, of whatever length, and return the seconds that it took."""
        self._last_id += 1
        line = stdio.CALL_LINE % (self._last_id, self._last_id)
        begin = time.perf_counter()
        os.write(self._process.stdin, line)
        answer = stdio.read_line(self._process)
        seconds = time.perf_counter() - begin
        check(answer, self._last_id)
        return seconds


def _check(message: dict[str, Any], words: int) -> None:
    """Make sure that a result is the whole answer."""
    try:
        result = message["result"]
        text = result["content"][0]["text"]
        right = not result.get("isError") and len(text.split()) == words
        right = right and result["structuredContent"]["metadata"]["finish_reason"] == "stop"
    except (KeyError, IndexError):
        right = False
    if not right:
        raise WrongAnswer(f"not the answer that was asked for: {str(message)[:500]}")
