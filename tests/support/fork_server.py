"""The fork server: programs of ours that tests start are forked from a process that has imported them.

Each is a process of its own with its arguments, environment, folder and streams, and a child of the test run
like any other. Importing took more CPU time than the tests themselves; now each worker does it once.

What a fork would do differently (options of Python, another path, descriptors passed on, programs of others)
starts anew. So does everything without xdist, under coverage, while mutants are tried and outside of Linux.
"""

import atexit
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[2]
COMMAND = str(Path(sysconfig.get_path("scripts"), "bridgehead"))
_PATH = {str(ROOT), str(ROOT / "src")}
_LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")
_ENCODINGS = ("PYTHONIOENCODING", *_LOCALE)
_IMPORTED_TOO = (
    *("asyncio", "rich.console", "uvloop"),
    *("tests.support.host_bridges", "tests.support.busy_bridge"),
)
_LARGEST = 100_000
"""Bytes of a request; a message of a socket holds twice as much."""
_SET_SUBREAPER = 36
_start_anew: Callable[..., None] = subprocess.Popen._execute_child  # type: ignore[attr-defined]  # noqa: SLF001


class ForkServer:
    """Starts programs for `subprocess`, and a process that forks them at the first of these."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._prctl = ctypes.CDLL(None).prctl

    def install(self) -> None:
        """Let `subprocess` start programs of ours this way. It has no public place for that."""

        def start(process: Any, *arguments: Any) -> None:
            request = _describe(*arguments)
            if request is None:
                _start_anew(process, *arguments)
                return
            pipes = arguments[10:16]
            wanted = enumerate((pipes[0], pipes[3], pipes[5]))
            process.pid = self._fork(request, [number if pipe == -1 else pipe for number, pipe in wanted])
            process._child_created = True  # noqa: SLF001
            process._close_pipe_fds(*pipes)  # noqa: SLF001

        subprocess.Popen._execute_child = start  # type: ignore[attr-defined]  # noqa: SLF001

    def end(self) -> None:
        """Let `subprocess` start every program itself again, and end the process that forks."""
        subprocess.Popen._execute_child = _start_anew  # type: ignore[attr-defined]  # noqa: SLF001
        self._control.close()
        self._theirs.close()
        if self._process is not None:
            self._process.wait()

    def _fork(self, request: bytes, streams: list[int]) -> int:
        with self._lock:
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", __name__, str(self._theirs.fileno())],
                    cwd=ROOT,
                    env={"PATH": os.environ.get("PATH", os.defpath)},
                    stdin=subprocess.DEVNULL,
                    pass_fds=[self._theirs.fileno()],
                )
                self._theirs.close()
            # The parent of the fork ends at once, so the fork becomes a child of the nearest process that
            # takes orphans: this one, and only now. Tests want to see that other orphans have ended.
            self._prctl(_SET_SUBREAPER, 1)
            try:
                socket.send_fds(self._control, [request], streams)
                return int(self._control.recv(16))
            finally:
                self._prctl(_SET_SUBREAPER, 0)


def make() -> ForkServer | None:
    """Make one where it pays and does no harm."""
    is_measured = any(name.startswith(("COV", "MUTANT")) for name in os.environ)
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    return ForkServer() if sys.platform == "linux" and is_worker and not is_measured else None


def _describe(  # noqa: PLR0917 - what subprocess gives
    words: Any,
    executable: Any,
    preexec_fn: Any,
    close_fds: Any,
    pass_fds: Any,
    cwd: Any,
    env: Any,
    startupinfo: Any,
    creationflags: Any,
    shell: Any,
    *rest: Any,
) -> bytes | None:
    """Return what the fork has to know; None if the program must start anew."""
    *_, gid, gids, uid, umask, start_new_session, process_group = rest
    if executable or preexec_fn or not close_fds or pass_fds or shell or isinstance(words, str | bytes):
        return None
    if (gid, gids, uid, umask, process_group) != (None, None, None, -1, -1):
        return None
    words, folder = [os.fspath(word) for word in words], Path(cwd or Path.cwd())
    environment = dict(os.environ if env is None else env)
    # Modules below bridgehead are what the bridges start themselves, and tests find them by their names.
    is_module = words[:2] == [sys.executable, "-m"] and (
        words[2] == "bridgehead" or words[2].startswith("tests.")
    )
    if not (is_module or words[0] == COMMAND) or not folder.is_dir():
        return None
    if not all(_means_the_same(name, value) for name, value in environment.items()):
        return None
    request = json.dumps([words, environment, str(folder), start_new_session]).encode()
    return request if len(request) < _LARGEST else None


def _means_the_same(name: str, value: str) -> bool:
    """Return whether a variable does the same to a Python that runs already."""
    if name == "PYTHONPATH":
        return set(value.split(os.pathsep)) <= _PATH
    if name in _ENCODINGS:
        return value.lower().replace("-", "").endswith("utf8")
    is_read_at_start = name.startswith(("PYTHON", "LD_", "MALLOC", "COV", "MUTANT"))
    return not is_read_at_start or name in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")


# --- the process that forks --------------------------------------------------------------------------------


def serve(control: socket.socket) -> None:
    """Fork a process for each request, and answer with its number."""
    import bridgehead

    for module in pkgutil.walk_packages(bridgehead.__path__, "bridgehead."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in _IMPORTED_TOO:
        importlib.import_module(name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who interrupts the test run ends this with it
    gc.collect()
    gc.freeze()
    while True:
        request, streams, _, _ = socket.recv_fds(control, _LARGEST, 3)
        if not request:
            return
        receiving, sending = os.pipe()
        if os.fork() == 0:
            if os.fork() == 0:
                _become(*json.loads(request), streams=streams, ready=sending)
            os._exit(0)
        for descriptor in (sending, *streams):
            os.close(descriptor)
        number = int(os.read(receiving, 16))
        os.close(receiving)
        os.wait()  # until then the fork has this parent's child for its parent
        control.send(str(number).encode())


def _become(
    words: list[str],
    environment: dict[str, str],
    folder: str,
    has_session: object,
    *,
    streams: list[int],
    ready: int,
) -> NoReturn:
    """Be the program from here on."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    if has_session:
        os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Whoever learns the number may send a signal or look at the streams at once: until here, an interrupt
    # would be ignored and the streams would be those of the process that forks.
    os.write(ready, str(os.getpid()).encode())
    os.closerange(3, 256)
    os.environ.clear()
    os.environ.update(environment)
    if not any(environment.get(name) for name in _LOCALE):
        os.environ["LC_CTYPE"] = "C.UTF-8"  # Python does so at its start
    time.tzset()
    os.chdir(folder)
    _open_streams("strict" if any(environment.get(name) for name in _ENCODINGS) else "surrogateescape")
    status = 0
    try:
        _run(words, folder)
    except SystemExit as left:
        if left.code is not None and not isinstance(left.code, int):
            sys.stderr.write(f"{left.code}\n")
        status = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException as failure:  # noqa: BLE001 - Python itself prints whatever it is
        sys.excepthook(type(failure), failure, failure.__traceback__)
        status = -signal.SIGINT if isinstance(failure, KeyboardInterrupt) else 1
    _end(status)


def _open_streams(errors: str) -> None:
    """Open the streams as Python does at its start."""
    is_unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdin = os.fdopen(0, encoding="utf-8", errors=errors, closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors=errors, closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.stdout.reconfigure(line_buffering=sys.stdout.isatty(), write_through=is_unbuffered)
    sys.stderr.reconfigure(line_buffering=True)


def _run(words: list[str], folder: str) -> None:
    added = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    others = [entry for entry in sys.path if entry not in _PATH] + [str(ROOT / "src")]
    if words[0] == COMMAND:
        sys.argv = words
        sys.path[:] = [str(Path(COMMAND).parent), *added, *others]
        runpy.run_path(COMMAND, run_name="__main__")
    else:
        sys.argv = words[2:]
        sys.path[:] = [folder, *added, *others]
        runpy.run_module(words[2], run_name="__main__", alter_sys=True)


def _end(status: int) -> NoReturn:
    """End as Python does, except that memory is left to the system: freeing it would first copy it."""
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - waits for threads
    atexit._run_exitfuncs()  # noqa: SLF001
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            status = status or 120  # as Python has it
    if status < 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status & 0xFF)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
