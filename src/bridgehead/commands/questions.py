"""Questions: elicitation at the terminal. Shows a tool's question and reads the answer."""

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
    """Show a question and return its answer; the end of input cancels it.

    A question without properties is answered with yes or no; otherwise each property is asked for until its
    value is valid.
    """
    console.print(question["message"], markup=False)
    schema: Schema = question["requestedSchema"]
    try:
        if not schema["properties"]:
            while (typed := (await _line(console, "yes or no: ")).lower()) not in _AGREEMENT:
                pass
            return {"action": _AGREEMENT[typed], "content": {}}
        required = schema.get("required", [])
        content: dict[str, Any] = {}
        for key, property_schema in schema["properties"].items():
            while key not in content:
                text = await _line(console, f"{key} ({tool_arguments.kind(property_schema)}): ")
                if not text and key not in required:
                    break  # an empty line skips an optional property
                try:
                    content[key] = tool_arguments.value(key, text, property_schema)
                except InvalidToolArgument as invalid:
                    console.print(str(invalid), markup=False)
    except EOFError:
        return {"action": "cancel"}
    return {"action": "accept", "content": content}


async def _line(console: Console, prompt: str) -> str:
    """Read a line in a daemon thread: a blocked read would delay Ctrl+C."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        # Not sys.stdin.readline: this thread would hold its lock while the process ends.
        typed = b""
        while not typed.endswith(b"\n") and (byte := os.read(sys.stdin.fileno(), 1)):
            typed += byte
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, typed)

    def settle(typed: bytes) -> None:
        if line.done():  # cancelled
            return
        if typed:
            line.set_result(typed.decode(errors="replace").strip())
        else:
            line.set_exception(EOFError())

    console.print(prompt, end="", markup=False)
    Thread(target=read, daemon=True).start()
    return await line
