"""Multi-round requests: how a handler of the stateless era asks its client, and continues with the answer.

A question ends the round with an `input_required` result. The client repeats the request with its answers and
with the sealed state, which holds the answers of earlier rounds; the handler runs from its start and finds
them. The server keeps nothing in between but the nonces of used states.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Raw, UnsetType

from .context import Context
from .input_requests import InputRequest
from .params import EMPTY, AnswerableParams
from .request_state import MemoryNonces, Seal, fingerprint, refuse_used


class NonceStore(Protocol):
    """Remembers the nonces of used states: in this process, or shared by the processes of one service."""

    async def use(self, nonce: str, expires: float) -> bool:
        """Return whether the nonce is new; it stays used until it expires."""


Keys = bytes | Sequence[bytes]
"""One key or several: the first seals, all open."""


class MultiRound:
    """Pauses and resumes the requests of one server, with state sealed by its keys."""

    def __init__(self, keys: Keys | None, lifetime: float, nonces: NonceStore | None = None) -> None:
        self._keys = keys
        self._lifetime = lifetime
        self._made_seal: Seal | None = None
        self._nonces = nonces
        """None until the first question: then the nonces of this process alone."""

    @property
    def _seal(self) -> Seal:
        if self._made_seal is None:
            self._made_seal = Seal(self._keys)
            self._nonces = self._nonces or MemoryNonces()
        return self._made_seal

    async def resume(
        self,
        context: Context[Any],
        owner: str,
        params: AnswerableParams,
        subject: str,
        arguments: Raw = EMPTY,
        *,
        needs_state: bool = False,
    ) -> None:
        """Give a repeated request the answers that came with it; refuse a state that was used before.

        With `needs_state` (destructive tools), answers without a valid requestState are ignored.
        """
        state, responses = params.request_state, params.input_responses
        if not context.revision.stateless or (
            isinstance(state, UnsetType) and (needs_state or isinstance(responses, UnsetType))
        ):
            return
        answers: dict[str, Any] = {}
        if not isinstance(state, UnsetType):
            opened = self._seal.open(state, fingerprint(owner, context.method, subject, arguments))
            answers = opened.answers
            if self._nonces is not None and not await self._nonces.use(opened.nonce, opened.expires):
                raise refuse_used()
        if not isinstance(responses, UnsetType):
            answers |= responses
        context.supply_answers(answers)

    def pause(
        self, context: Context[Any], owner: str, params: Any, unanswered: dict[str, InputRequest]
    ) -> dict[str, Any]:
        """Make the result that asks: the input requests, and the state to come back with."""
        # Bound to the request and its owner, so that answers cannot be used for another request, at another
        # bridge, or by another caller.
        subject = getattr(params, "uri", None) or params.name
        identity = fingerprint(owner, context.method, subject, getattr(params, "arguments", EMPTY))
        state = self._seal.close(context.used_answers, identity, self._lifetime)
        requests = {
            key: {"method": request.method, "params": request.params_in(context.revision)}
            for key, request in unanswered.items()
        }
        return {"inputRequests": requests, "requestState": state}
