"""A simulated game: it answers like both generations of the real one, and can inject faults.

`answer` is its core: a world and a request in, a reply out. `Game` puts it behind a WebSocket that dials in
as the game does. `command.simulate` lets a person run it. Builds and faults that only our
tests need are in `tests/support/game`.
"""

from .faults import Faults
from .game import Exchange, Game
from .world import STARTER, World

__all__ = ["STARTER", "Exchange", "Faults", "Game", "World"]
