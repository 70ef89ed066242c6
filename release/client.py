"""Client: the least that an MCP client does, to see that a server starts, answers and ends."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer
from types import TracebackType
from typing import Any, Self

REVISION = "2025-11-25"
PATIENCE = 60.0
"""Seconds for an answer, and for the end: on a slow machine an archive unpacks first."""


class Client:
    """One server process that is asked over standard input and output."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self._log = TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=dict(environment),
            cwd=folder,
        )
        self._last_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        with self._log as log:
            log.seek(0)
            logged = log.read().decode(errors="replace")
        if error is not None:
            error.add_note(logged)
        elif self._process.returncode:
            raise AssertionError(f"the server ended with exit status {self._process.returncode}\n{logged}")

    def hello(self) -> dict[str, Any]:
        """Shake hands, and return how the server introduces itself."""
        info = {"name": "smoke", "version": "1"}
        answer = self.ask("initialize", {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": info})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        introduced: dict[str, Any] = answer["serverInfo"]
        return introduced

    def tools(self) -> list[str]:
        """Return the names of the tools."""
        return [tool["name"] for tool in self.ask("tools/list", {})["tools"]]

    def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Call a tool and return the text of its answer; an answer that is an error is a failure."""
        result = self.ask("tools/call", {"name": tool, "arguments": dict(arguments)})
        text = "\n".join(block.get("text", "") for block in result["content"])
        if result.get("isError"):
            raise AssertionError(f"{tool} failed: {text}")
        return text

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return its result; an error of the protocol is a failure."""
        self._last_id += 1
        too_late = Timer(PATIENCE, self._process.kill)  # reading a pipe has no limit of its own
        too_late.start()
        try:
            self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
            answer = self._answer()
        finally:
            too_late.cancel()
        if "error" in answer:
            raise AssertionError(f"{method} failed: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == self._last_id and "method" not in message:
                return message
        raise AssertionError("the server ended, or did not answer in time")
