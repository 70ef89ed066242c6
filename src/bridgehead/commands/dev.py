"""Dev: relays between a client and a bridge under development, and restarts the bridge on every change.

The bridge runs in a child process. After a restart the client's handshake is repeated to the new process, so
the session continues, and the client is notified that the lists may have changed.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import shlex
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from bridgehead.mcp import (
    Bridge,
    DeclarationError,
    Dialect,
    ProtocolError,
    Revision,
    ToolError,
    run_on_loop,
)
from bridgehead.runtime import bridge_files, plugins
from bridgehead.runtime.command_line import Parser, completed_by
from bridgehead.runtime.errors import place_of
from bridgehead.runtime.manifest import Manifest, serve
from bridgehead.runtime.metrics import Metrics

from .client_entries import end_server
from .traffic import Traffic, show

_ABOUT = """\
Serve a bridge on standard input and output, restart it whenever its files change, and show the traffic.
Put this command into a client's configuration in place of the bridge's own.

A file with a bridge, one of the bridges in it, a module:
  bridgehead dev server.py
  bridgehead dev server.py:weather
  bridgehead dev weather_bridge.bridge

Print the command that opens it in the MCP Inspector:
  bridgehead dev aoc --inspect
"""
CHILD = "--child"
INSPECTOR = "@modelcontextprotocol/inspector"
END_SECONDS = 2.0
POLL_MS = 500
MAX_LINE_BYTES = 64 * 1024 * 1024
"""Longest message of a bridge; asyncio's own limit is 64 KiB."""
MAX_FOLDERS = 500
"""Limit of watched folders. With more, the file is probably in a home folder, not in a project."""
_NOT_SOURCE = ("__pycache__", "node_modules")
_INTERNAL_ERROR = -32603
_LISTS = ("tools", "resources", "prompts")


def parser() -> Parser:
    """Return the parser of the command line."""
    command = Parser(prog="bridgehead dev", description=_ABOUT)
    about = "a file, a module, or the name of a bridge"
    target = command.add_argument("target", metavar="BRIDGE", help=about)
    completed_by(target, lambda *_: bridge_files.suggestions())
    command.add_argument(
        "--inspect",
        action="store_true",
        help="print the command that opens the bridge in the official MCP Inspector (needs Node), and exit",
    )
    command.add_argument("--quiet", action="store_true", help="do not write the traffic to the terminal")
    return command


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Serve until the client closes standard input."""
    if arguments[:1] == [CHILD]:  # this process runs the bridge
        try:
            bridge = bridge_files.load(arguments[1])
        except bridge_files.BridgeFileError as failure:
            cause = failure.__cause__
            if isinstance(cause, SyntaxError | DeclarationError):  # a line and a sentence say it all
                sys.stderr.write(f"{place_of(cause)}\n")
            elif cause is not None:
                traceback.print_exception(cause)
            raise
        return serve(_told_to_the_agent(bridge), environment)
    options = parser().parse_args(arguments)
    target: str = options.target
    command = [sys.executable, "-m", "bridgehead"]
    try:
        source = bridge_files.find(target)
    except plugins.UnknownBridge:
        raise bridge_files.BridgeFileError(
            f"There is no module or bridge {target!r}.",
            next_step=f"Name a Python file, a module, or one of {', '.join(plugins.names())}.",
        ) from None
    if source is None:
        folder = Path(inspect.getfile(plugins.load(target).make)).parent
        command += [target]
    else:
        folder = Path(source.path).parent
        target = target if source.module else source.target
        command += ["dev", CHILD, target]
    if options.inspect:
        # Not `environment`: the bridge reads .env again itself, and the shell does not know its values.
        sys.stdout.write(f"{inspector_command(target, os.environ)}\n")
        return 0
    try:
        return run_on_loop(_serve(command, folder, target, is_quiet=options.quiet))
    except KeyboardInterrupt:  # "Press Ctrl+C to stop": the end that was asked for
        return 0


class _DialectOfDevelopment(Dialect):
    """Words what no dialect knows, an exception of the author's own, so that the agent can correct it."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def for_revision(self, revision: Revision) -> Dialect:
        return _DialectOfDevelopment(self._dialect.for_revision(revision))

    def invalid_arguments(self, tool: str, problem: str) -> ProtocolError | ToolError:
        return self._dialect.invalid_arguments(tool, problem)

    def translate(self, error: Exception) -> ProtocolError | ToolError | None:
        known = self._dialect.translate(error)
        if known is None:
            traceback.print_exception(error)
            known = ToolError(f"{place_of(error)}: {type(error).__name__}: {error}")
        return known


def _told_to_the_agent(manifest: Manifest) -> Manifest:
    """Let a tool's exception come back in its result. Only here: elsewhere its text may hold secrets."""

    def make(settings: Any, metrics: Metrics | None) -> Bridge[Any]:
        bridge = manifest.make(settings, metrics)
        bridge.dialect = _DialectOfDevelopment(bridge.dialect)
        return bridge

    return msgspec.structs.replace(manifest, make=make)


def inspector_command(target: str, environment: Mapping[str, str]) -> str:
    """Return the shell command that opens `bridgehead dev TARGET` in the official Inspector.

    The Inspector hands a server only a few variables such as PATH, so the bridge's own settings that are set
    here are named with `-e`. Their values are left to the shell: a key must not appear on the terminal.
    """
    settings = plugins.load(target).settings.declared if target in plugins.names() else ()
    is_windows = sys.platform == "win32"
    names = [setting.name for setting in settings if environment.get(setting.name)]
    passed = [f'-e "{name}=$env:{name}"' if is_windows else f'-e "{name}=${name}"' for name in names]
    server = [sys.executable, "-m", "bridgehead", "dev", target, "--quiet"]
    # After `--` the Inspector reads no options of its own, so `-m` and `--quiet` reach Python and the bridge.
    # PowerShell drops a bare one.
    start = ["npx", INSPECTOR, *passed, '"--"' if is_windows else "--"]
    return " ".join([*start, subprocess.list2cmdline(server) if is_windows else shlex.join(server)])


async def _serve(command: list[str], folder: Path, target: str, *, is_quiet: bool) -> int:
    from rich.console import Console
    from watchfiles import PythonFilter, awatch

    console = Console(stderr=True, highlight=False)
    traffic = Traffic(lambda entry: None if is_quiet else show(console, entry))
    console.print(f"Watching [bold]{folder}[/]. Press Ctrl+C to stop.")
    if sys.stdin.isatty():
        console.print(
            "A client starts this by itself: put this command into its configuration. To try it by hand, run "
            f"in another terminal:\n  bridgehead tools {target}\n  bridgehead dev {target} --inspect",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    relay = Relay(command, traffic)

    async def watch() -> None:
        known = _modification_times(folder)
        # Also polls, because changes before the watcher is ready are not reported, and it does not say when
        # it is. Not recursive: below a home folder that would be every folder of the user.
        watcher = awatch(
            *list_source_folders(folder),
            watch_filter=PythonFilter(),
            rust_timeout=POLL_MS,
            yield_on_timeout=True,
            recursive=False,
        )
        async for _ in watcher:
            current = _modification_times(folder)
            if current == known:
                continue
            names = ", ".join(sorted({path.name for path, _ in current.items() ^ known.items()}))
            known = current
            console.print(f"[bold yellow]{names} changed:[/] restarting")
            await relay.restart()

    watching = asyncio.create_task(watch())
    try:
        await relay.run()
    finally:
        watching.cancel()
    return 0


def list_source_folders(folder: Path) -> list[Path]:
    """Return a folder and its subfolders that may have the author's modules, at most MAX_FOLDERS."""
    folders = []
    for name, below, files in os.walk(folder):
        if "pyvenv.cfg" in files and name != str(folder):
            below.clear()  # a virtual environment: its packages are not being edited
            continue
        folders.append(Path(name))
        below[:] = [each for each in below if each.isidentifier() and each not in _NOT_SOURCE]
        if len(folders) == MAX_FOLDERS:
            break
    return folders


def _modification_times(folder: Path) -> dict[Path, int]:
    times = {}
    for each in list_source_folders(folder):
        for path in each.glob("*.py"):
            with suppress(OSError):  # deleted since glob saw it
                times[path] = path.stat().st_mtime_ns
    return times


class Relay:
    """Passes messages between one client and a bridge process that can be replaced."""

    def __init__(self, command: list[str], traffic: Traffic) -> None:
        self._command = command
        self._traffic = traffic
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._lines: asyncio.Queue[bytes] = asyncio.Queue(maxsize=1000)
        self._initialize: dict[str, Any] | None = None
        """The client's initialize request, repeated to each new process."""
        self._open: dict[Any, dict[str, Any]] = {}
        """The client's requests that have no answer yet, by id."""
        self._listening: asyncio.Task[None] | None = None
        self._last_line = ""
        """What the bridge wrote last on standard error: after its end, why it ended."""
        # Held while the process is replaced and while a line is written to it: a line written during a
        # restart would reach neither process.
        self._process_lock = asyncio.Lock()

    async def run(self) -> None:
        """Relay until the client closes its end."""
        loop = asyncio.get_running_loop()

        def read() -> None:
            # Not `sys.stdin.buffer`: Python closes that at its end, and aborts because this thread reads.
            with suppress(RuntimeError):  # the loop has ended
                for line in os.fdopen(sys.stdin.fileno(), "rb", closefd=False):
                    asyncio.run_coroutine_threadsafe(self._lines.put(line), loop).result()
                asyncio.run_coroutine_threadsafe(self._lines.put(b""), loop).result()

        # A thread, because Windows cannot wait for a pipe and a process in one loop.
        threading.Thread(target=read, daemon=True).start()
        async with self._process_lock:
            await self._start()
        while line := await self._lines.get():
            message = self._traffic.add("client", line)
            if message.get("method") == "initialize":
                self._initialize = message
            is_request = "method" in message and "id" in message
            async with self._process_lock:
                process = self._process
                # `_reading` fails the open requests when the process ends. Once it is done, fail a new
                # request here.
                if process is None or process.stdin is None or self._reading is None or self._reading.done():
                    if is_request:
                        self._fail_request(message, f"The bridge is not running. {self._last_line}".strip())
                    continue
                if is_request:
                    self._open[_key(message["id"])] = message
                with suppress(ConnectionError):  # process ended; `_reading` fails the open requests
                    process.stdin.write(line if line.endswith(b"\n") else line + b"\n")
                    await process.stdin.drain()
        await self._end()

    async def restart(self) -> None:
        """Replace the process and notify the client that its lists may have changed."""
        async with self._process_lock:
            await self._end()
            await self._start()
            process = self._process
            if self._initialize is None or process is None:
                return
            # Both pipes exist: `_start` asked for them.
            assert process.stdin is not None and process.stdout is not None  # noqa: PT018, S101
            if self._reading is not None:
                self._reading.cancel()  # two readers of one pipe are an error, and the answer is read here
            initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            with suppress(ConnectionError):
                process.stdin.write(msgspec.json.encode(self._initialize) + b"\n")
                await process.stdout.readline()  # dropped: the client has the answer of the first process
                process.stdin.write(msgspec.json.encode(initialized) + b"\n")
                await process.stdin.drain()
            self._reading = asyncio.create_task(self._pass_on(process))
            for kind in _LISTS:
                self._send({"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"})

    def _send(self, message: dict[str, Any]) -> None:
        self._write(msgspec.json.encode(message) + b"\n")

    def _fail_request(self, request: dict[str, Any], reason: str) -> None:
        """Answer for the bridge; a model sees the result of its call, and seldom an error of the protocol."""
        answer: dict[str, Any] = {"error": {"code": _INTERNAL_ERROR, "message": reason}}
        if request["method"] == "tools/call":
            answer = {"result": {"content": [{"type": "text", "text": reason}], "isError": True}}
            if self._initialize is None:  # the stateless era
                answer["result"]["resultType"] = "complete"
        self._send({"jsonrpc": "2.0", "id": request["id"], **answer})

    def _write(self, line: bytes) -> None:
        self._traffic.add("server", line)
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()

    async def _start(self) -> None:
        # The child needs the same modules. An empty entry of sys.path is the current folder, which it adds
        # itself.
        form = "pretty" if sys.stderr.isatty() else "json"
        environment = {
            "LOG_FORMAT": form,
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            limit=MAX_LINE_BYTES,
        )
        self._last_line = ""
        self._listening = asyncio.create_task(self._hear(self._process))
        self._reading = asyncio.create_task(self._pass_on(self._process))

    async def _pass_on(self, process: asyncio.subprocess.Process) -> None:
        """Pass the bridge's output to the client; when it ends, fail the open requests."""
        assert process.stdout is not None  # noqa: S101 - it was asked for
        while line := await process.stdout.readline():
            with suppress(msgspec.DecodeError, AttributeError):
                message = msgspec.json.decode(line)
                if "method" not in message:
                    self._open.pop(_key(message.get("id")), None)
            self._write(line)
        if self._listening is not None:
            await self._listening
        for request in list(self._open.values()):
            self._fail_request(
                request, f"The bridge ended before it answered. {self._last_line or 'Try again.'}"
            )
        self._open.clear()

    async def _hear(self, process: asyncio.subprocess.Process) -> None:
        """Pass on what the bridge writes for its author, and keep the last line."""
        assert process.stderr is not None  # noqa: S101 - it was asked for
        while line := await process.stderr.readline():
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()
            self._last_line = line.decode(errors="replace").strip() or self._last_line

    async def _end(self) -> None:
        """Close the bridge's input, and wait a limited time for its last answers."""
        process, self._process = self._process, None
        if process is not None:
            await end_server(process, END_SECONDS, self._reading)


def _key(request_id: Any) -> Any:
    """Return an id that can be put into a set, whatever a peer sent."""
    return request_id if isinstance(request_id, int | str) else None
