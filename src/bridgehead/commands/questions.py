"""Questions: what a tool asks its user, asked at the terminal and answered by the person there."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from threading import Thread
from typing import Any

from rich.console import Console

from . import tool_arguments
from .tool_arguments import InvalidToolArgument, Schema

_AGREEMENT = {"y": "accept", "yes": "accept", "n": "decline", "no": "decline"}


async def ask(console: Console, question: dict[str, Any]) -> dict[str, Any]:
    """Put a question and give its answer; whoever ends the input answers nothing."""
    console.print(question["message"], markup=False)
    schema: Schema = question["requestedSchema"]
    try:
        if not schema["properties"]:
            return {"action": await _agreement(console), "content": {}}
        return {"action": "accept", "content": await _form(console, schema)}
    except EOFError:
        return {"action": "cancel"}


async def _agreement(console: Console) -> str:
    """Ask for a plain yes or no, until it is one of them."""
    while True:
        said = (await _line(console, "yes or no: ")).lower()
        if said in _AGREEMENT:
            return _AGREEMENT[said]


async def _form(console: Console, schema: Schema) -> dict[str, Any]:
    """Ask for one value after another, each until it fits; saying nothing leaves out what may be left out."""
    required = schema.get("required", [])
    content: dict[str, Any] = {}
    for key, one in schema["properties"].items():
        while key not in content:
            text = await _line(console, f"{key} ({tool_arguments.kind(one)}): ")
            if not text and key not in required:
                break
            try:
                content[key] = tool_arguments.value(key, text, one)
            except InvalidToolArgument as misfit:
                console.print(str(misfit), markup=False)
    return content


async def _line(console: Console, prompt: str) -> str:
    """Wait for a line, in a thread that does not keep the process from ending when it is interrupted."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        said = _read_line(sys.stdin.fileno())
        with suppress(RuntimeError):  # nobody waits any more
            loop.call_soon_threadsafe(_settle, line, said)

    console.print(prompt, end="", markup=False)
    Thread(target=read, daemon=True).start()
    return await line


def _read_line(descriptor: int) -> bytes:
    """Read a line without Python's buffer, whose lock this thread would still hold when the process ends."""
    said = b""
    while not said.endswith(b"\n") and (byte := os.read(descriptor, 1)):
        said += byte
    return said


def _settle(line: asyncio.Future[str], said: bytes) -> None:
    if line.done():
        return
    if said:
        line.set_result(said.decode(errors="replace").strip())
    else:
        line.set_exception(EOFError())
