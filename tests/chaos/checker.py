"""Checker: holds a history to the books of the far sides. Pure: no process, no clock.

What may happen in a fault: an operation fails, or its outcome stays unknown. What may never happen:

- a record that was acknowledged is not in the database, or any record is there twice;
- a record is there that nobody asked for, or one that was refused;
- the upstream charged more than the books have committed, or the books more than the budget;
- a paid call was answered and the upstream has no bill for it;
- two answers of one id differ, or an answer came under the id of another request.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from tests.chaos.history import History

TOLERANCE_USD = 1e-9
"""Charges are whole billionths of a dollar."""


class Books(Struct):
    """What the far sides say after everything has settled."""

    records: Sequence[str]
    """The models in the records, one for each record."""
    charges: Mapping[str, float]
    """What the upstream charged, by the name of the call."""
    committed_usd: float
    """What the books of the budget have committed: settled, uncertain and reserved."""
    budget_usd: float


def check(history: History, books: Books) -> list[str]:
    """Return a sentence for each rule that was broken."""
    return [*_check_records(history, books), *_check_money(history, books), *_check_answers(history)]


def _check_records(history: History, books: Books) -> list[str]:
    found = Counter(books.records)
    asked = {operation.name: operation for operation in history.of("record")}
    broken = [f"{name} is in the records {count} times" for name, count in found.items() if count > 1]
    broken += [f"{name} is in the records, and nobody asked for it" for name in found.keys() - asked.keys()]
    for name, operation in asked.items():
        if operation.outcome == "acknowledged" and name not in found:
            broken.append(f"{name} was acknowledged, and is lost")
        if operation.outcome == "refused" and name in found:
            broken.append(f"{name} was refused, and is in the records")
    return broken


def _check_money(history: History, books: Books) -> list[str]:
    charged = sum(books.charges.values())
    broken = []
    if charged > books.committed_usd + TOLERANCE_USD:
        broken.append(f"${charged:.9f} were charged, and ${books.committed_usd:.9f} are committed")
    if books.committed_usd > books.budget_usd + TOLERANCE_USD:
        broken.append(f"${books.committed_usd:.9f} are committed, of ${books.budget_usd:g}")
    broken += [
        f"{operation.name} was answered, and the upstream has no bill for it"
        for operation in history.of("paid", "stream")
        if operation.outcome == "acknowledged" and operation.name not in books.charges
    ]
    asked = {operation.name for operation in history.of("paid", "stream")}
    broken += [f"{name} was charged, and nobody asked for it" for name in books.charges.keys() - asked]
    return broken


def _check_answers(history: History) -> list[str]:
    return history.crossed + [
        f"{operation.name} has {len(operation.answers)} answers that differ"
        for operation in history.operations
        if any(answer != operation.answers[0] for answer in operation.answers[1:])
    ]
