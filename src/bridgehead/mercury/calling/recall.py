"""Recall: calls by the very bytes of their arguments, so that one that comes again need not be read again.

Arguments that are the same to the byte have been found right before, and make the same call.
"""

from __future__ import annotations

from .call import Call

MOST_BYTES = 1024 * 1024
"""Above this everything is forgotten; who asks again is known again."""


class Recall(dict[tuple[str, bytes], Call]):
    """Calls by who made them and with which arguments."""

    size = 0

    def note(self, call: Call, arguments: bytes) -> None:
        """Know a call by its arguments from now on."""
        self.size += len(arguments) + len(call.body)
        if self.size > MOST_BYTES:
            self.clear()
            self.size = 0
            return
        self[call.client, arguments] = call
