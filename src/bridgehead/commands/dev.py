"""Dev: serves a bridge while it is being written: starts it again on every change, and shows the traffic.

It stands between a client and the bridge, which runs in a process of its own. When a file changes, the bridge
ends and a new one takes its place; the client's handshake is repeated, so that its session goes on, and the
client hears that the lists may have changed.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from bridgehead.mcp import run_on_loop
from bridgehead.runtime import plugins
from bridgehead.runtime.command_line import Parser, completed_by
from bridgehead.runtime.errors import InvalidArgument

from .client_entries import end_server
from .traffic import Traffic, show

_ABOUT = """\
Serve a bridge on standard input and output, restart it whenever its files change, and show the traffic.
Put this command into a client's configuration in place of the bridge's own.

  bridgehead dev weather_bridge.bridge          a module with `manifest` or `bridge`
  bridgehead dev aoc --inspect                  print the command that opens a bridge in the MCP Inspector
"""
CHILD = "--child"
INSPECTOR = "@modelcontextprotocol/inspector"
END_SECONDS = 2.0
LOOK_MS = 500
_RESTARTED = -32603
_LISTS = ("tools", "resources", "prompts")


def parser() -> Parser:
    """Return the parser of the command line."""
    found = Parser(prog="bridgehead dev", description=_ABOUT)
    target = found.add_argument("target", metavar="MODULE", help="a module, or the name of a bridge")
    completed_by(target, lambda *_: plugins.names())
    found.add_argument(
        "--inspect",
        action="store_true",
        help="print the command that opens the bridge in the official MCP Inspector (needs Node), and exit",
    )
    found.add_argument("--quiet", action="store_true", help="do not write the traffic to the terminal")
    return found


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Serve until the client goes."""
    if arguments[:1] == [CHILD]:
        return _serve_module(arguments[1], environment)
    given = parser().parse_args(arguments)
    command, folder = _find(given.target)
    if given.inspect:
        # Not `environment`: what stands in .env is read again by the bridge, and the shell does not know it.
        sys.stdout.write(f"{inspector_command(given.target, os.environ)}\n")
        return 0
    return run_on_loop(_serve(command, folder, given))


def _find(target: str) -> tuple[list[str], Path]:
    """Return what starts a bridge, and the folder whose changes matter."""
    start = [sys.executable, "-m", "bridgehead"]
    if target in plugins.names():
        home = find_spec(plugins.load(target).make.__module__)
        command = [*start, target]
    else:
        sys.path.insert(0, "")
        try:
            home = find_spec(target)
        except (ModuleNotFoundError, ValueError):
            home = None
        command = [*start, "dev", CHILD, target]
    if home is None or home.origin is None:
        raise InvalidArgument(
            f"There is no module or bridge {target!r}.",
            next_step=f"Name a module that Python finds from here, or one of {', '.join(plugins.names())}.",
        )
    return command, Path(home.origin).parent


def inspector_command(target: str, environment: Mapping[str, str]) -> str:
    """Return the shell command that opens `bridgehead dev TARGET` in the official Inspector.

    The Inspector hands a server only a few variables such as PATH, so the bridge's own settings that are set
    here are named with `-e`. Their values are left to the shell: a key must not appear on the terminal.
    """
    settings = plugins.load(target).settings.declared if target in plugins.names() else ()
    is_windows = sys.platform == "win32"
    names = [setting.name for setting in settings if environment.get(setting.name)]
    passed = [f'-e "{name}=%{name}%"' if is_windows else f'-e "{name}=${name}"' for name in names]
    server = [sys.executable, "-m", "bridgehead", "dev", target, "--quiet"]
    # After `--` the Inspector reads no options of its own, so `-m` and `--quiet` reach Python and the bridge.
    start = ["npx", INSPECTOR, *passed, "--"]
    return " ".join([*start, subprocess.list2cmdline(server) if is_windows else shlex.join(server)])


def _serve_module(name: str, environment: Mapping[str, str]) -> int:
    """Serve what a module declares; this is the process that is started again and again."""
    from importlib import import_module

    from bridgehead.mcp import Bridge, stdio
    from bridgehead.runtime import manifest

    sys.path.insert(0, "")
    module = import_module(name)
    declared = getattr(module, "manifest", None)
    if isinstance(declared, manifest.Manifest):
        return manifest.serve(declared, environment)
    bridge = getattr(module, "bridge", None)
    if isinstance(bridge, Bridge):
        return stdio.run(bridge)
    raise InvalidArgument(f"{name} has neither `manifest` nor `bridge`.", next_step="Declare one of them.")


async def _serve(command: list[str], folder: Path, given: Any) -> int:
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    traffic = Traffic(lambda entry: None if given.quiet else show(console, entry))
    console.print(f"Watching [bold]{folder}[/]. Press Ctrl+C to stop.")
    relay = Relay(command, traffic)
    watching = asyncio.create_task(_watch(folder, relay, console))
    try:
        await relay.run()
    finally:
        watching.cancel()
    return 0


async def _watch(folder: Path, relay: Relay, console: Any) -> None:
    from watchfiles import PythonFilter, awatch

    known = _take_stock(folder)
    # It also polls: a change may come before the watcher is ready, and the watcher does not say when it is.
    watcher = awatch(folder, watch_filter=PythonFilter(), rust_timeout=LOOK_MS, yield_on_timeout=True)
    async for _ in watcher:
        found = _take_stock(folder)
        if found == known:
            continue
        names = ", ".join(sorted({path.name for path, _ in found.items() ^ known.items()}))
        known = found
        console.print(f"[bold yellow]{names} changed:[/] restarting")
        await relay.restart()


def _take_stock(folder: Path) -> dict[Path, int]:
    """Return when each source file was changed."""
    found = {}
    for path in folder.rglob("*.py"):
        with suppress(OSError):  # it has just gone
            found[path] = path.stat().st_mtime_ns
    return found


class Relay:
    """Passes messages between a client, which stays, and a bridge, which changes."""

    def __init__(self, command: list[str], traffic: Traffic) -> None:
        self._command = command
        self._traffic = traffic
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._lines: asyncio.Queue[bytes] = asyncio.Queue(maxsize=1000)
        self._hello: dict[str, Any] | None = None
        """The client's initialize request, to be repeated."""
        self._open: set[Any] = set()
        """Requests of the client that have no answer yet."""
        self._changing = asyncio.Lock()

    async def run(self) -> None:
        """Relay until the client closes its end."""
        self._read_client(asyncio.get_running_loop())
        async with self._changing:
            await self._start()
        while line := await self._lines.get():
            message = self._traffic.add("client", line)
            if message.get("method") == "initialize":
                self._hello = message
            async with self._changing:
                await self._forward(line, message)
        await self._end()

    async def restart(self) -> None:
        """Put a new process in the old one's place, and tell the client that its lists may have changed."""
        async with self._changing:
            await self._end()
            await self._start()
            if self._hello is None:
                return
            await self._repeat_handshake(self._hello)
            for kind in _LISTS:
                self._tell_client({"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"})

    # --- the client ----------------------------------------------------------------------------------------

    def _read_client(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read standard input in a thread: Windows cannot wait for a pipe and a process in one loop."""

        def read() -> None:
            with suppress(RuntimeError):  # the loop has ended, and nobody wants more
                for line in sys.stdin.buffer:
                    asyncio.run_coroutine_threadsafe(self._lines.put(line), loop).result()
                asyncio.run_coroutine_threadsafe(self._lines.put(b""), loop).result()

        threading.Thread(target=read, daemon=True).start()

    def _tell_client(self, message: dict[str, Any]) -> None:
        self._write(msgspec.json.encode(message) + b"\n")

    def _answer_failed(self, request_id: Any, why: str) -> None:
        error = {"code": _RESTARTED, "message": why}
        self._tell_client({"jsonrpc": "2.0", "id": request_id, "error": error})

    def _write(self, line: bytes) -> None:
        self._traffic.add("server", line)
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()

    # --- the bridge ----------------------------------------------------------------------------------------

    async def _start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment,
            limit=64 * 1024 * 1024,
        )
        self._reading = asyncio.create_task(self._pass_on(self._process))

    async def _forward(self, line: bytes, message: dict[str, Any]) -> None:
        process = self._process
        is_request = "method" in message and "id" in message
        # Whoever still reads what it says answers for it when it ends; afterwards nobody would.
        if process is None or process.stdin is None or self._reading is None or self._reading.done():
            if is_request:
                self._answer_failed(message["id"], "The bridge is not running. Its error is in the terminal.")
            return
        if is_request:
            self._open.add(_key(message["id"]))
        with suppress(ConnectionError):  # it has just ended; its exit answers what is open
            process.stdin.write(line if line.endswith(b"\n") else line + b"\n")
            await process.stdin.drain()

    async def _pass_on(self, process: asyncio.subprocess.Process) -> None:
        """Hand what the bridge says to the client, until it ends."""
        assert process.stdout is not None  # noqa: S101 - it was asked for
        while line := await process.stdout.readline():
            with suppress(msgspec.DecodeError, AttributeError):
                message = msgspec.json.decode(line)
                if "method" not in message:
                    self._open.discard(_key(message.get("id")))
            self._write(line)
        for waiting in sorted(self._open, key=str):
            self._answer_failed(waiting, "The bridge ended before it answered. Try again.")
        self._open.clear()

    async def _repeat_handshake(self, hello: dict[str, Any]) -> None:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return
        if self._reading is not None:
            self._reading.cancel()
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        with suppress(ConnectionError):
            process.stdin.write(msgspec.json.encode(hello) + b"\n")
            await process.stdout.readline()  # the client has had its answer
            process.stdin.write(msgspec.json.encode(ready) + b"\n")
            await process.stdin.drain()
        self._reading = asyncio.create_task(self._pass_on(process))

    async def _end(self) -> None:
        """Close the bridge's input, and give it time to answer open requests."""
        process, self._process = self._process, None
        if process is not None:
            await end_server(process, END_SECONDS, self._reading)


def _key(request_id: Any) -> Any:
    return request_id if isinstance(request_id, int | str) else None
