"""Demo: a tour of the bridge, with a simulated game that connects, stalls, disconnects and comes back."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from rich.console import Console

from bridgehead.runtime.demo_script import DemoScript
from bridgehead.runtime.manifest import Trial

from .simulator import STARTER, Faults, Game

T = TypeVar("T")

LIMIT = 10.0
_PAGE = "https://bitburner-official.github.io"
_FILES = {"home": {**STARTER, "notes.txt": "Buy more RAM."}, "n00dles": {}}
_COST = 2.0
"""RAM in GB that the demo's script costs with weaken, grow and hack."""
_WEAKEN = "    await ns.weaken(target);\n"


@contextmanager
def trial(folder: Path) -> Iterator[Trial]:
    """Provide an environment with a free port and no game."""
    environment = {
        "BITBURNER_LISTEN": "127.0.0.1:0",
        "BITBURNER_CONNECT_WAIT_MS": "0",
        "BRIDGEHEAD_STATE_DIR": str(folder),
    }
    yield Trial(environment, "connection_status", "No game is connected")


def show_demo(console: Console) -> bool:
    """Show the tour; return whether every step gave the expected result."""
    # The bridge gets a number, not port 0: the simulated game has to know where to dial.
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    with TemporaryDirectory(prefix="bridgehead-") as state:
        environment = {
            "BITBURNER_LISTEN": f"127.0.0.1:{port}",
            "BRIDGEHEAD_STATE_DIR": state,
            "BITBURNER_CONNECT_WAIT_MS": "500",
            "RPC_TIMEOUT_MS": "1000",
        }
        with DemoScript(console, "bitburner", environment) as shown, closing(_Player()) as player:
            _tour(shown, player, f"ws://127.0.0.1:{port}")
    return shown.failures == 0


class _Player:
    """A simulated game, and the event loop that runs it in a thread."""

    def __init__(self) -> None:
        self.game = Game(3, _FILES)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of the game and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LIMIT)

    def close(self) -> None:
        """Hang up and end the thread."""
        self.run(self.game.hang_up())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LIMIT)
        self._loop.close()


def _tour(shown: DemoScript, player: _Player, url: str) -> None:
    game = player.game
    result = shown.call("Before a game is connected, an agent can ask what to do.", "connection_status", {})
    shown.expect(result["structuredContent"]["state"] == "waiting")
    shown.say("The player sets host and port in Options → Remote API, and the game dials in.")
    shown.expect(player.run(game.dial(url, _PAGE)))
    game.faults = Faults(drop=1, times=1)
    failed = shown.call("The connection drops in the middle of a call.", "list_files", {})
    shown.expect(failed["structuredContent"]["code"] == "disconnected")
    shown.say("The game dials again by itself.")
    shown.expect(player.run(game.dial(url, _PAGE)))
    result = shown.call("Which files are on the home server?", "list_files", {})
    shown.expect(result["structuredContent"]["files"] == ["notes.txt", *STARTER])
    name = "lib/scout.js"
    shown.request("tools/call", {"name": "delete_file", "arguments": {"filename": name}})
    shown.expect(name not in game.servers["home"])
    shown.call(
        "One was deleted by mistake. Nothing is lost: bring it back.", "restore_file", {"filename": name}
    )
    shown.expect(game.servers["home"].get(name) == STARTER[name])
    before = game.servers["home"]["early.js"]
    edit = {"filename": "early.js", "old_text": _WEAKEN, "new_text": f"{_WEAKEN}    await ns.grow(target);\n"}
    why = "You: early.js earns too little. The agent edits it in the running game."
    result = shown.call(why, "edit_file", edit)
    shown.show_change(before, game.servers["home"]["early.js"])
    shown.expect("ns.grow" in game.servers["home"]["early.js"])
    shown.expect(result["structuredContent"]["ram_gb"] == _COST)
    shown.say(f"It costs {_COST:g} GB of RAM now, and the version before is kept.")
