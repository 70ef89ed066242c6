"""Checker: it notices each thing that may never happen, and nothing that may."""

import pytest
from msgspec.structs import replace

from tests.chaos.checker import Books, check
from tests.chaos.history import History, Kind, Outcome

GOOD = Books(["stored"], {"paid": 0.25}, 0.5, 1.0)


def history(*more: tuple[Kind, str, Outcome]) -> History:
    made = History()
    for kind, name, outcome in (
        ("record", "stored", "acknowledged"),
        ("record", "refused", "refused"),
        ("record", "unknown", "unknown"),
        ("paid", "paid", "acknowledged"),
        ("stream", "cut", "unknown"),
        *more,
    ):
        made.end(made.begin("c1", kind, name), outcome, f"answer of {name}")  # type: ignore[arg-type]
    return made


@pytest.mark.parametrize(
    "books",
    [
        GOOD,
        replace(GOOD, records=["stored", "unknown"]),
        replace(GOOD, charges={"paid": 0.25, "cut": 0.25}),
        replace(GOOD, committed_usd=1.0),
    ],
)
def test_what_may_happen_in_a_fault_is_no_fault(books: Books) -> None:
    assert check(history(), books) == []


@pytest.mark.parametrize(
    ("books", "words"),
    [
        (replace(GOOD, records=[]), "stored was acknowledged, and is lost"),
        (replace(GOOD, records=["stored", "stored"]), "stored is in the records 2 times"),
        (replace(GOOD, records=["stored", "other"]), "other is in the records, and nobody asked for it"),
        (replace(GOOD, records=["stored", "refused"]), "refused was refused, and is in the records"),
        (replace(GOOD, charges={"paid": 0.75}), "$0.750000000 were charged, and $0.500000000 are committed"),
        (replace(GOOD, committed_usd=1.5), "$1.500000000 are committed, of $1"),
        (replace(GOOD, charges={}), "paid was answered, and the upstream has no bill for it"),
        (replace(GOOD, charges={"paid": 0.1, "x": 0.1}), "x was charged, and nobody asked for it"),
    ],
)
def test_books_that_do_not_fit_the_history_are_named(books: Books, words: str) -> None:
    assert check(history(), books) == [words]


def test_one_id_has_one_answer() -> None:
    made = history(("task", "t1", "acknowledged"))
    made.operations[-1].answers.append("another")
    made.crossed.append("c1 asked 5 and was answered 6")

    assert check(made, GOOD) == ["c1 asked 5 and was answered 6", "t1 has 2 answers that differ"]
