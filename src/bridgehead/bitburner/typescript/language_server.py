"""Language server: the TypeScript program as a child process, spoken to over its pipes by LSP.

Handles the wire only. Every answer has a deadline, after which the process is killed: some scripts keep it
busy for minutes, during which it ignores SIGTERM.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

START_SECONDS = 15.0
"""Start and first project on a busy machine; usually 0.2 s."""
ANSWER_SECONDS = 2.0
_LENGTH = re.compile(rb"Content-Length: *(\d+)", re.IGNORECASE)
_MAX_MESSAGE = 16_000_000
_LANGUAGES = {"js": "javascript", "jsx": "javascriptreact", "ts": "typescript", "tsx": "typescriptreact"}


class ServerFailed(Exception):
    """The process ended, timed out, or sent something unreadable; it has been killed."""


class Position(Struct):
    """A place in a text: line from 0, and UTF-16 units."""

    line: int
    character: int


class Range(Struct):
    """A part of a text."""

    start: Position
    end: Position


class RawDiagnostic(Struct):
    """One diagnostic as the server sends it."""

    range: Range
    message: str
    code: int = 0
    severity: int = 1


class LanguageServer:
    """One running server. The checked script is only in its memory; all other files are in its folder."""

    def __init__(self, process: Any, folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._next = 0

    @classmethod
    async def start(cls, program: Path, folder: Path) -> LanguageServer:
        """Start the program in a folder with a tsconfig.json."""
        try:
            process = await asyncio.create_subprocess_exec(
                str(program),
                "--lsp",
                "--stdio",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=folder,
                env={},  # empty: it must not find packages or settings of the user
            )
        except OSError as problem:
            raise ServerFailed(str(problem)) from None
        server = cls(process, folder)
        capabilities = {"textDocument": {"diagnostic": {"dynamicRegistration": False}}}
        parameters = {"processId": None, "rootUri": folder.as_uri(), "capabilities": capabilities}
        await server._ask("initialize", parameters, START_SECONDS)
        server._send({"method": "initialized", "params": {}})
        await server.diagnose("", "ts", START_SECONDS)  # reads the definitions
        return server

    async def diagnose(
        self, text: str, extension: str, seconds: float = ANSWER_SECONDS
    ) -> list[RawDiagnostic]:
        """Return the diagnostics of a text."""
        uri = (self._folder / f"script.{extension}").as_uri()
        document = {"uri": uri, "languageId": _LANGUAGES[extension], "version": 1, "text": text}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        answer = await self._ask("textDocument/diagnostic", {"textDocument": {"uri": uri}}, seconds)
        self._send({"method": "textDocument/didClose", "params": {"textDocument": {"uri": uri}}})
        try:
            return msgspec.convert((answer or {}).get("items", []), list[RawDiagnostic])
        except (msgspec.ValidationError, AttributeError) as problem:
            await self.kill()
            raise ServerFailed(str(problem)) from None

    async def kill(self) -> None:
        """End the process at once."""
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def _ask(self, method: str, parameters: dict[str, Any], seconds: float) -> Any:
        self._next += 1
        number = self._next
        try:
            async with asyncio.timeout(seconds):
                self._send({"id": number, "method": method, "params": parameters})
                while True:
                    message = await self._receive()
                    if "method" in message:
                        if "id" in message:  # a request of the server: it has no settings to fetch here
                            items = (message.get("params") or {}).get("items", [])
                            is_list = message["method"] == "workspace/configuration"
                            result = [None] * len(items) if is_list else None
                            self._send({"id": message["id"], "result": result})
                    elif message.get("id") == number:
                        return message["result"]
        except (
            TimeoutError,
            OSError,
            EOFError,
            KeyError,
            asyncio.LimitOverrunError,
            ServerFailed,
        ) as problem:
            await self.kill()
            raise ServerFailed(f"{method}: {problem!r}") from None
        except BaseException:
            # A cancelled call would leave an unread answer in the pipe.
            await self.kill()
            raise

    def _send(self, message: dict[str, Any]) -> None:
        body = msgspec.json.encode({"jsonrpc": "2.0", **message})
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    async def _receive(self) -> dict[str, Any]:
        header = await self._process.stdout.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(header)
        if length is None or int(length[1]) > _MAX_MESSAGE:
            raise ServerFailed("unreadable answer")
        body = await self._process.stdout.readexactly(int(length[1]))
        try:
            return msgspec.json.decode(body, type=dict[str, Any])
        except msgspec.DecodeError as problem:
            raise ServerFailed(str(problem)) from None
