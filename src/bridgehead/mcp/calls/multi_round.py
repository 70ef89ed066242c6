"""Multi-round requests: how a handler of the stateless era asks its client, and goes on with the answer.

A question ends the round with an `input_required` result. The client makes the request again with its answers
and with the sealed state, which holds the answers of the rounds before; the handler runs from its start, and
finds them. The server keeps nothing in between.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Raw, UnsetType

from .context import Context
from .params import EMPTY, AnswerableParams

if TYPE_CHECKING:
    from .input_requests import InputRequest
    from .request_state import RequestState, Seal


class StateUse(Protocol):
    """Remembers which states were answered."""

    def use(self, nonce: str, expires: float) -> bool | Awaitable[bool]:
        """Tell whether a state is used for the first time, at once or after asking."""


Keys = bytes | Sequence[bytes]
"""One key or several: the first seals, all open."""


class MultiRound:
    """Pauses and resumes the requests of one server, with state sealed by its keys."""

    def __init__(self, keys: Keys | None, lifetime: float) -> None:
        self._keys = keys
        self._lifetime = lifetime
        self._made_seal: Seal | None = None
        self.used_states: StateUse | None = None
        """Remembers which states were answered; in this process alone where nothing else is given."""

    @property
    def _seal(self) -> Seal:
        if self._made_seal is None:
            from .request_state import Seal, UsedStates  # hashing is not needed for a handshake

            self._made_seal = Seal(self._keys)
            self.used_states = self.used_states or UsedStates()
        return self._made_seal

    def resume(
        self,
        context: Context[Any],
        params: AnswerableParams,
        subject: str,
        arguments: Raw = EMPTY,
        *,
        needs_state: bool = False,
    ) -> Awaitable[None] | None:
        """Give a request that came again the answers that came with it.

        What is returned is to be awaited before anything is done: whether the answers come for the first
        time may take asking.

        Where it `needs_state`, as consent to something that destroys does, answers without the state of a
        question are answers to nothing that was asked.
        """
        state, responses = params.request_state, params.input_responses
        if not context.revision.stateless or (
            isinstance(state, UnsetType) and (needs_state or isinstance(responses, UnsetType))
        ):
            return None
        answers: dict[str, Any] = {}
        checking: Awaitable[None] | None = None
        if not isinstance(state, UnsetType):
            request = _fingerprint(context, subject, arguments)
            opened = self._seal.open(state, request, context.principal)
            answers = opened.answers
            checking = self._use(opened)
        if not isinstance(responses, UnsetType):
            answers |= responses
        context.supply_answers(answers)
        return checking

    def _use(self, opened: RequestState) -> Awaitable[None] | None:
        from .request_state import refuse_used

        states = self.used_states
        is_first = states is None or states.use(opened.nonce, opened.expires)
        if is_first is False:
            raise refuse_used()
        return None if is_first is True else _refuse_later(is_first)

    def pause(
        self, context: Context[Any], params: Any, unanswered: dict[str, InputRequest]
    ) -> dict[str, Any]:
        """Make the result that asks: the input requests, and the state to come back with."""
        # Bound to what was asked, so that answers to one request cannot be brought to another.
        subject = getattr(params, "uri", None) or params.name
        fingerprint = _fingerprint(context, subject, getattr(params, "arguments", EMPTY))
        state = self._seal.close(context.used_answers, fingerprint, context.principal, self._lifetime)
        requests = {
            key: {"method": request.method, "params": request.params_in(context.revision)}
            for key, request in unanswered.items()
        }
        return {"inputRequests": requests, "requestState": state}


async def _refuse_later(asking: Awaitable[bool]) -> None:
    from .request_state import refuse_used

    if not await asking:
        raise refuse_used()


def _fingerprint(context: Context[Any], subject: str, arguments: Raw) -> bytes:
    from .request_state import fingerprint  # hashing is not needed for a handshake

    return fingerprint(context.method, subject, arguments)
