"""Call hooks: code of a bridge or its host around every tool call, resource read and prompt.

A hook gets the call and a function that runs it. It belongs to the bridge that declared the part, so it acts
wherever that part is offered: in a combined bridge, in a restricted one. Arguments
that do not fit go through it too. Only an undeclared name does not: it has no bridge.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from time import perf_counter
from types import CoroutineType
from typing import Any, Literal

from msgspec import Struct

from .context import Context, find_input_requests

Kind = Literal["tool", "resource", "prompt"]
Status = Literal["ok", "error", "asked", "cancelled"]


class Invocation(Struct):
    """One tool call, resource read or prompt, as a hook sees it."""

    kind: Kind
    name: str
    """The name of the tool or prompt, or the URI."""
    context: Context[Any]
    arguments: Any = None
    """The decoded arguments, once `run` has read them; None if they are invalid or need not be read."""
    answer_bytes: int | None = None
    """The size of a tool's encoded result, set after the hooks; None without one, and for a task."""


CallHook = Callable[[Invocation, Callable[[], Any]], Any]
"""Gets a call and a function that runs it; returns its result, a replacement, or a coroutine for either.

Running the call returns the handler's result, or a coroutine for it, and passes on its exception.

A plain hook returns the coroutine of a call that waits as it is, so a call that does not wait needs no task.
"""


class Outcome(Struct, frozen=True):
    """How a call ended."""

    status: Status
    """`asked`: a client of the stateless era has to answer a question first, and then calls again."""
    value: Any = None
    error: BaseException | None = None
    waited: bool = False
    """Whether the call was a coroutine."""


def wrap_hook(outer: CallHook, inner: CallHook | None) -> CallHook:
    """Put one hook around another."""
    if inner is None:
        return outer
    return lambda call, run: outer(call, lambda: inner(call, run))


def observe_calls(
    ended: Callable[[Invocation, Outcome, float], None],
    *,
    waits: Callable[[Invocation], None] | None = None,
    extend: Callable[[Invocation, Any], Any] | None = None,
) -> CallHook:
    """Make a hook that calls `ended` with each call and its duration in seconds.

    `waits` is called when an asynchronous call begins; its `ended` follows with `waited`. `extend` gets a
    call's return value, and returns it or a replacement.
    """

    def observe(call: Invocation, run: Callable[[], Any]) -> Any:
        started = perf_counter()
        try:
            value = run()
            if isinstance(value, CoroutineType):
                return observe_later(call, value, started)
            if extend is not None:
                value = extend(call, value)
        except BaseException as error:
            ended(call, _failure(error, waited=False), perf_counter() - started)
            raise
        status: Status = "error" if getattr(value, "is_error", False) is True else "ok"
        ended(call, Outcome(status, value), perf_counter() - started)
        return value

    # A separate coroutine, so that `observe` stays a plain function: a call that does not wait needs no task.
    async def observe_later(call: Invocation, work: Coroutine[Any, Any, Any], started: float) -> Any:
        if waits is not None:  # here and not above: a call that is cancelled before it begins never ends
            waits(call)
        try:
            value = await work
            if extend is not None:
                value = extend(call, value)
        except BaseException as error:
            ended(call, _failure(error, waited=True), perf_counter() - started)
            raise
        status: Status = "error" if getattr(value, "is_error", False) is True else "ok"
        ended(call, Outcome(status, value, waited=True), perf_counter() - started)
        return value

    return observe


def _failure(error: BaseException, *, waited: bool) -> Outcome:
    if find_input_requests(error):
        return Outcome("asked", None, error, waited)
    is_cancelled = isinstance(error, asyncio.CancelledError | GeneratorExit)
    return Outcome("cancelled" if is_cancelled else "error", None, error, waited)
