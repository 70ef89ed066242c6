"""Planning: decide what to do with each file, by a three-way comparison with the last common content.

Pure: digests in, actions out. A side that still has the last common content takes the other's; if both have
changed, both are kept. Deletes are carried over only with `Rules.deletes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from ..changes.differences import Difference

Place = tuple[str, str]
"""Server and path."""
Digests = dict[Place, str]
Mode = Literal["both", "pull", "push"]
Kind = Literal["push", "pull", "conflict", "delete_game", "delete_local", "held", "agree", "skip"]


MAX_DELETES = 20
MAX_DELETED_SHARE = 0.1
"""With more deletes than either limit, the user is asked first: a folder on an unmounted disk looks empty."""


class Action(Struct, frozen=True):
    """The decision for one file, with a reason unless it is obvious."""

    kind: Kind
    place: Place
    why: str = ""

    @property
    def changes_something(self) -> bool:
        """Whether it changes the folder or the game."""
        return self.kind in ("push", "pull", "delete_game", "delete_local")


class Rules(Struct, frozen=True):
    """The limits of a plan."""

    mode: Mode = "both"
    deletes: bool = False
    """Whether deletes are carried over; held back otherwise."""


def find_common(base: Digests, sent: Mapping[Place, set[str]], game: Digests) -> Digests:
    """Return the last content that both sides had.

    What the folder sent is common as soon as the game holds it, whether or not the answer arrived. Otherwise
    a sync that ended in between would take the folder's own text for a change in the game, and pull it over
    what the folder holds by now.
    """
    arrived = {place: held for place in sent if (held := game.get(place, "")) in sent[place]}
    return {place: known for place, known in (base | arrived).items() if known}


def make_plan(
    base: Digests, local: Digests, game: Digests, rules: Rules, reverted: frozenset[Place] = frozenset()
) -> list[Action]:
    """Decide what to do with each file. `reverted` are files that the game lost by loading an older save."""
    # Actions against the direction of a one-way sync.
    against = {"pull": ("push", "delete_game"), "push": ("pull", "delete_local"), "both": ()}[rules.mode]
    actions = []
    for place in sorted({*base, *local, *game}):
        action = _decide(
            place, base.get(place), local.get(place), game.get(place), rules, is_reverted=place in reverted
        )
        if action is not None and action.kind in against:
            action = Action("skip", place, f"{action.kind} not asked for")
        if action is not None:
            actions.append(action)
    return actions


def _decide(
    place: Place, base: str | None, local: str | None, game: str | None, rules: Rules, *, is_reverted: bool
) -> Action | None:
    if local == game:
        return Action("agree", place) if local != base else None
    # Before the next rule, which would take the older content for a change in the game and pull it.
    if is_reverted and local is not None:
        return Action("push", place, "the game had lost it")
    if local == base:  # only the game changed
        if game is not None:
            return Action("pull", place)
        return Action("delete_local" if rules.deletes else "held", place, "deleted in the game")
    if game == base:  # only the folder changed
        if local is not None:
            return Action("push", place)
        return Action("delete_game" if rules.deletes else "held", place, "deleted here")
    # Both changed: a change wins over a delete, so that nothing is lost.
    if game is None:
        return Action("push", place, "changed here and deleted in the game")
    if local is None:
        return Action("pull", place, "changed in the game and deleted here")
    return Action("conflict", place, "changed on both sides")


def need_consent(deletes: int, files: int) -> bool:
    """Return whether a plan with so many deletes must be confirmed; one file alone never is."""
    return deletes > MAX_DELETES or deletes > max(1, MAX_DELETED_SHARE * files)


def find_reverted(differences: list[Difference], *, is_first: bool) -> frozenset[Place]:
    """Return the files that the game lost by loading an older save; their local content is the newer one.

    At the first comparison, the player may have deleted a missing file while sync was off: it counts as lost
    only if another file proves an older save.
    """
    is_older = any(difference.state == "older" for difference in differences)
    states = ("older",) if is_first and not is_older else ("missing", "older")
    return frozenset(
        (difference.server, difference.filename) for difference in differences if difference.state in states
    )
