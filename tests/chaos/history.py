"""The history of a run: every operation of every client, from its request to its outcome."""

import time
from typing import Any, Literal

from msgspec import Struct

Kind = Literal["record", "paid", "stream", "session", "task"]
Outcome = Literal["acknowledged", "refused", "unknown"]
"""`refused` says that nothing was done; `unknown` is everything else that is no acknowledgement."""


class Operation(Struct):
    """One operation. It is unknown until something else is known."""

    client: str
    kind: Kind
    name: str
    """Names it at the far side: the model of a record, the beginning of a prompt, the id of a task."""
    began: float
    ended: float = 0.0
    outcome: Outcome = "unknown"
    answers: list[Any] = []
    """What came back under its id; more than one value is a fault, unless they are equal."""
    detail: str = ""


class History:
    """What all clients did, in the order of their requests."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.crossed: list[str] = []
        """Answers that came under another id than that of their request."""

    def begin(self, client: str, kind: Kind, name: str) -> Operation:
        """Note that an operation begins."""
        operation = Operation(client, kind, name, time.monotonic())
        self.operations.append(operation)
        return operation

    def end(self, operation: Operation, outcome: Outcome, answer: Any = None, detail: str = "") -> None:
        """Note how it ended."""
        operation.ended, operation.outcome, operation.detail = time.monotonic(), outcome, detail
        if answer is not None:
            operation.answers.append(answer)

    def of(self, *kinds: Kind) -> list[Operation]:
        """Return the operations of some kinds."""
        return [operation for operation in self.operations if operation.kind in kinds]
