"""The simulated game with what only tests need: other builds, a connection that breaks, a page that hangs."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bridgehead.bitburner import simulator
from bridgehead.bitburner.simulator import Exchange, Faults
from bridgehead.bitburner.simulator.answer import decode, reply


def answer(world: simulator.World, request: str | bytes) -> bytes | None:
    """Return the reply to the text of a request without any socket, or None if the game stays silent."""
    try:
        message = decode(request)
    except (ValueError, RecursionError):
        return None
    return None if message is None else reply(world, message)


class World(simulator.World):
    """The contents of a game of an older or newer build."""

    def __init__(
        self,
        generation: int = 2,
        files: Mapping[str, Mapping[str, str]] | None = None,
        *,
        lacking: Iterable[str] = (),
        **options: Any,
    ) -> None:
        super().__init__(generation, files, **options)
        self.lacking = frozenset(lacking)
        """Methods that this build does not know yet."""
        self.tells_size = False
        """Whether metadata hold the size, as in later builds of generation 3."""

    def knows(self, method: str) -> bool:
        """Tell whether this build knows a method."""
        return super().knows(method) and method not in self.lacking

    def describe(self, host: str, path: str) -> dict[str, object]:
        """Return the metadata of a file."""
        size = {"size": len(self.servers[host][path].encode())} if self.tells_size else {}
        return super().describe(host, path) | size


class Game(simulator.Game):
    """A game whose connection can break, and which can hang. It passes for a real one."""

    user_agent: str | None = None

    def __init__(
        self,
        generation: int = 2,
        files: Mapping[str, Mapping[str, str]] | None = None,
        faults: Faults | None = None,
        *,
        seed: int = 0,
        lacking: Iterable[str] = (),
        watcher: Callable[[Exchange], None] | None = None,
    ) -> None:
        super().__init__(generation, files, faults, seed=seed, watcher=watcher)
        self.world: World = World(generation, files, lacking=lacking)  # type: ignore[mutable-override]

    async def hang_up(self) -> None:
        """Close the connection, also that of a game that hangs."""
        self.thaw()
        await super().hang_up()

    def cut(self) -> None:
        """Drop the connection without a closing handshake."""
        if self._connection is not None:
            self._connection.transport.abort()

    def freeze(self) -> None:
        """Stop like a page that hangs: nothing is read, so not even a ping is answered."""
        if self._connection is not None:
            self._connection.transport.pause_reading()

    def thaw(self) -> None:
        """Go on with what has piled up."""
        if self._connection is not None:
            self._connection.transport.resume_reading()
