"""A bridge and a simulated game that dial each other in one process: owns how a test gets both.

The client is checked by the oracle, the socket is real, the game is the shipped simulation.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bridgehead.bitburner.bridge import make_bridge
from bridgehead.bitburner.changes.history import History, Version
from bridgehead.bitburner.session import Session
from bridgehead.bitburner.settings import BitburnerSettings
from bridgehead.mcp.in_memory import Answering
from bridgehead.mcp.revisions import NEWEST_HANDSHAKE, Revision
from bridgehead.runtime.metrics import Counter, Metrics
from bridgehead.runtime.tool_filter import add_prefix
from tests.support.checked import CheckedClient, connect
from tests.support.game import Game
from tests.support.waiting import until

PAGE = "https://bitburner-official.github.io"
SCRIPT = "export async function main(ns) { await ns.hack('n00dles'); }\n"
FILES = {"home": {"hack.js": SCRIPT, "lib/tools.js": "export const a = 1;\n", "notes.txt": "one\ntwo\nthree"}}
GENERATIONS = (2, 3)


class Play:
    """A client, its bridge, and the game that dialled in."""

    def __init__(self, client: CheckedClient, session: Session, game: Game, metrics: Metrics) -> None:
        self.client = client
        self.session = session
        self.game = game
        self._metrics = metrics

    @property
    def url(self) -> str:
        """Where the bridge listens."""
        return f"ws://{self.session.connection.address}"

    def count(self, name: str, *labels: str) -> float:
        """What a counter has come to."""
        (metric,) = [metric for metric in self._metrics.all if metric.name == name]
        assert isinstance(metric, Counter)
        return metric.values.get(labels, 0)

    async def ok(self, tool: str, **arguments: Any) -> Any:
        """Call a tool that must succeed, and return its text and its structured content."""
        result = await self.client.call(tool, arguments)
        assert not result.get("isError"), result["content"][0]["text"]
        return result["content"][0]["text"], result.get("structuredContent")

    async def fails(self, tool: str, **arguments: Any) -> Any:
        """Call a tool that must fail; return its text and the structured problem."""
        result = await self.client.call(tool, arguments)
        assert result.get("isError"), result
        text, problem = result["content"][0]["text"], result["structuredContent"]
        assert problem["message"] in text
        assert problem["next_step"] in text
        return text, problem

    def asked(self, method: str) -> list[Any]:
        """The parameters of every request of a method that the game has seen."""
        return [request["params"] for request in self.game.requests if request["method"] == method]


def versions_of(history: History, filename: str, server: str = "home") -> list[Version]:
    """Return the kept versions of a file with their contents, newest first."""
    loaded = [history._read(entry.name) for entry in history.list_entries(server, filename)]  # noqa: SLF001
    return [version for version in loaded if version is not None]


def settings(state: Path, **environment: str) -> BitburnerSettings:
    """Settings that suit a test: a free port, a folder of its own, no waiting for what does not come."""
    return BitburnerSettings(
        {
            "BITBURNER_LISTEN": "127.0.0.1:0",
            "BRIDGEHEAD_STATE_DIR": str(state),
            "BITBURNER_CONNECT_WAIT_MS": "50",
            "RPC_TIMEOUT_MS": "60000",
            "RPC_RECONNECT_BASE_MS": "10",
            "RPC_RECONNECT_MAX_MS": "50",
            **environment,
        }
    )


@asynccontextmanager
async def bridged(
    state: Path,
    *,
    revision: Revision = NEWEST_HANDSHAKE,
    capabilities: dict[str, Any] | None = None,
    answering: Answering | None = None,
    game: Game | None = None,
    **environment: str,
) -> AsyncIterator[Play]:
    """A bridge that no game has dialled yet."""
    metrics, chosen = Metrics(), settings(state, **environment)
    bridge = make_bridge(chosen, metrics=metrics)
    served = add_prefix(bridge, chosen, chosen.tool_prefix)
    async with (
        connect(served, revision=revision, capabilities=capabilities, answering=answering) as client,
        game or Game(3, FILES) as playing,
    ):
        lifespan = client.dispatcher.lifespans[bridge]
        await lifespan.wait_until_entered()
        yield Play(client, lifespan.value, playing, metrics)


@asynccontextmanager
async def played(state: Path, *, game: Game | None = None, **options: Any) -> AsyncIterator[Play]:
    """A bridge with a game."""
    async with bridged(state, game=game, **options) as play:
        assert await play.game.dial(play.url, PAGE)
        await until(lambda: play.session.connection.link is not None)
        yield play
