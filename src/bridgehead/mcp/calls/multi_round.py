"""Multi-round requests: how a handler of the stateless era asks its client, and goes on with the answer.

A question ends the round with an `input_required` result. The client makes the request again with its answers
and with the sealed state, which holds the answers of the rounds before; the handler runs from its start, and
finds them. The server keeps nothing in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Raw, UnsetType

from .context import Context
from .params import EMPTY, AnswerableParams

if TYPE_CHECKING:
    from .input_requests import InputRequest
    from .request_state import Seal

Keys = bytes | Sequence[bytes]
"""One key or several: the first seals, all open."""


class MultiRound:
    """Pauses and resumes the requests of one server, with state sealed by its keys."""

    def __init__(self, keys: Keys | None, lifetime: float) -> None:
        self._keys = keys
        self._lifetime = lifetime
        self._made_seal: Seal | None = None

    @property
    def _seal(self) -> Seal:
        if self._made_seal is None:
            from .request_state import Seal  # hashing is not needed for a handshake

            self._made_seal = Seal(self._keys)
        return self._made_seal

    def resume(
        self,
        context: Context[Any],
        params: AnswerableParams,
        subject: str,
        arguments: Raw = EMPTY,
        *,
        needs_state: bool = False,
    ) -> None:
        """Give a request that came again the answers that came with it.

        Where it `needs_state`, as consent to something that destroys does, answers without the state of a
        question are answers to nothing that was asked.
        """
        state, responses = params.request_state, params.input_responses
        if not context.revision.stateless or (
            isinstance(state, UnsetType) and (needs_state or isinstance(responses, UnsetType))
        ):
            return
        answers: dict[str, Any] = {}
        if not isinstance(state, UnsetType):
            request = _fingerprint(context, subject, arguments)
            answers = self._seal.open(state, request, context.principal)
        if not isinstance(responses, UnsetType):
            answers |= responses
        context.supply_answers(answers)

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


def _fingerprint(context: Context[Any], subject: str, arguments: Raw) -> bytes:
    from .request_state import fingerprint  # hashing is not needed for a handshake

    return fingerprint(context.method, subject, arguments)
