"""Far sides: a folder of puzzles, a simulated game and a simulated API, for one run of a client."""

import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.agents.clients import Server
from tests.interop.server_process import listening
from tests.support.ports import free_port

BRIDGEHEAD = str(Path(sysconfig.get_path("scripts"), "bridgehead"))
TAP = str(Path(__file__).with_name("tap.py"))
LONG_LINES = 4_000
LONG_FILE = "".join(
    f'ns.tprint("line {number}: what a script does here", {number});\n' for number in range(1, LONG_LINES + 1)
)


@dataclass(frozen=True)
class FarSides:
    """The servers of a run, and where each one's traffic is logged."""

    servers: list[Server]
    folder: Path

    def log(self, bridge: str) -> Path:
        """Return the path of a server's log."""
        return self.folder / f"{bridge}.log"


@contextmanager
def far_sides(folder: Path, api: str | None = None) -> Iterator[FarSides]:
    """Run the far sides; `api` is the address of another API than the simulated one."""
    puzzles, files, state = folder / "aoc", folder / "files", folder / "state"
    (puzzles / "instructions").mkdir(parents=True)
    (puzzles / "instructions" / "Day01_phase1.md").write_text("Count the snowflakes.\n", encoding="utf-8")
    (files / "lib").mkdir(parents=True)
    (files / "long.js").write_text(LONG_FILE, encoding="utf-8")
    (files / "old.js").write_text('ns.tprint("old");\n', encoding="utf-8")
    (files / "lib" / "a.js").write_text("export const a = 1;\n", encoding="utf-8")
    game_port = free_port()
    with ExitStack() as stack:
        if api is None:
            port = free_port()
            simulator = [BRIDGEHEAD, "mercury", "simulate", "--port", str(port), "--delay-ms", "0"]
            api = stack.enter_context(listening(simulator, port))
        game = subprocess.Popen(
            [
                *(BRIDGEHEAD, "bitburner", "simulate", "--url", f"ws://127.0.0.1:{game_port}"),
                *("--files", str(files), "--reconnect", "0.2"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        stack.callback(game.wait)
        stack.callback(game.terminate)
        settings = {
            "aoc": {"AOC_DATA_DIR": str(puzzles)},
            "bitburner": {
                "BITBURNER_LISTEN": f"127.0.0.1:{game_port}",
                "BITBURNER_CONNECT_WAIT_MS": "15000",
            },
            "mercury": {"MERCURY_API_URL": f"{api}/v1", "MERCURY_API_KEY": "fake"},
        }
        common = {"BRIDGEHEAD_STATE_DIR": str(state), "MCP_LOG_LEVEL": "error"}
        servers = [
            Server(
                name,
                (sys.executable, TAP, str(folder / f"{name}.log"), BRIDGEHEAD, name),
                {**common, **own},
            )
            for name, own in settings.items()
        ]
        yield FarSides(servers, folder)


class SilentApi:
    """An API that never answers a completion, and tells when it was asked and when the asker hung up."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.left = threading.Event()
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                api.asked.set()
                with suppress(OSError):
                    self.connection.recv(1)  # nothing more comes: this returns when the other side closes
                api.left.set()

            def do_GET(self) -> None:
                self.send_error(404)

            def log_message(self, *_args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @contextmanager
    def running(self) -> Iterator[str]:
        """Serve; give the address."""
        self._thread.start()
        try:
            yield f"http://127.0.0.1:{self._server.server_port}"
        finally:
            self._server.shutdown()
            self._server.socket.close()
            self._thread.join()
