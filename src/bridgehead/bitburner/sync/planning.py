"""Planning: decides what has to happen to a file, from what both sides hold and held when they last agreed.

Pure: digests in, actions out. A side that still holds the last common content gives way to the other; where
both have changed, both are kept. A delete is never carried over unless that is asked for.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Place = tuple[str, str]
"""Server and path."""
Digests = dict[Place, str]
Mode = Literal["both", "pull", "push"]
Kind = Literal["push", "pull", "conflict", "delete_game", "delete_local", "held", "agree", "skip"]


class Action(Struct, frozen=True):
    """What is to be done with one file, and why where that is not plain."""

    kind: Kind
    place: Place
    why: str = ""

    @property
    def changes_something(self) -> bool:
        """Whether one of the sides is changed by it."""
        return self.kind in ("push", "pull", "delete_game", "delete_local")


class Rules(Struct, frozen=True):
    """How far a plan may go."""

    mode: Mode = "both"
    deletes: bool = False
    """Whether deletes are carried over; held back otherwise."""


def make_plan(
    base: Digests, local: Digests, game: Digests, rules: Rules, reverted: frozenset[Place] = frozenset()
) -> list[Action]:
    """Decide for every file; those in `reverted` were lost by the game, which loaded an older save."""
    places = sorted({*base, *local, *game})
    decided = (
        _decide(
            place, base.get(place), local.get(place), game.get(place), rules, is_reverted=place in reverted
        )
        for place in places
    )
    return [_restrict(action, rules) for action in decided if action is not None]


def _decide(
    place: Place, base: str | None, local: str | None, game: str | None, rules: Rules, *, is_reverted: bool
) -> Action | None:
    if local == game:
        return Action("agree", place) if local != base else None
    if is_reverted and local is not None:
        return Action("push", place, "the game had lost it")
    if local == base:
        return _follow(place, "pull", "delete_local", game, rules, "deleted in the game")
    if game == base:
        return _follow(place, "push", "delete_game", local, rules, "deleted here")
    return _reconcile(place, local, game)


def _reconcile(place: Place, local: str | None, game: str | None) -> Action:
    """Decide where both sides have changed: a change counts more than a delete."""
    if game is None:
        return Action("push", place, "changed here and deleted in the game")
    if local is None:
        return Action("pull", place, "changed in the game and deleted here")
    return Action("conflict", place, "changed on both sides")


def _follow(place: Place, change: Kind, delete: Kind, content: str | None, rules: Rules, why: str) -> Action:
    """Do on the one side what was done on the other."""
    if content is not None:
        return Action(change, place)
    return Action(delete, place, why) if rules.deletes else Action("held", place, why)


def _restrict(action: Action, rules: Rules) -> Action:
    """Leave alone what goes in a direction that was not asked for."""
    against = {"pull": ("push", "delete_game"), "push": ("pull", "delete_local"), "both": ()}[rules.mode]
    return Action("skip", action.place, f"{action.kind} not asked for") if action.kind in against else action
