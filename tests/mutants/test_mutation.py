"""Mutants: what is changed, what is left alone, and how the sample is drawn."""

import ast
from pathlib import Path

import pytest

from tests.mutants.__main__ import SOURCE, Candidate, draw, report
from tests.mutants.mutation import Mutant, find_mutants


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("a < b", ["(a <= b)"]),
        ("x = é + 1", ["(é - 1)", "(2)"]),
        ("x = a and b", ["(a or b)"]),
        ("x = not a", ["(a)"]),
        ("x = True", ["(False)"]),
        ("def f():\n    return a", ["return None"]),
        ("async def f():\n    await close(1)", ["pass", "(2)"]),
        ("x += y", ["pass"]),
        ("x = a if b else c", ["(a if not b else c)"]),
    ],
)
def test_each_kind_of_change_is_made_once(source: str, after: list[str]) -> None:
    assert [mutant.after for mutant in find_mutants(source)] == after


@pytest.mark.parametrize(
    "source",
    [
        '"""1 < 2"""',
        "def f(x: Literal[1]) -> Literal[2]: ...",
        "_log.info('a', n=1)",
        "raise Wrong(1)",
        "x = f'{a + 1}'",
        "if TYPE_CHECKING:\n    x = 1",
        "def f():\n    return None",
    ],
)
def test_texts_types_and_logs_are_left_alone(source: str) -> None:
    assert list(find_mutants(source)) == []


def test_a_mutant_differs_from_its_module_in_that_place_only() -> None:
    path = SOURCE / "host" / "proxies.py"
    source = path.read_text(encoding="utf-8")
    mutants = list(find_mutants(source))

    assert len(mutants) > 10
    for mutant in mutants:
        ast.parse(mutant.text)
        assert mutant.text != source
        assert mutant.text.replace(mutant.after, "", 1).split("\n")[0] == source.split("\n")[0]


def test_a_seed_draws_the_same_sample_again_and_another_seed_another() -> None:
    parts = ["host/proxies.py", "aoc/files"]
    first = draw(1, 40, parts)

    assert first == draw(1, 40, parts)
    assert first != draw(2, 40, parts)
    assert sum(one.is_guarded for one in first) >= 10


@pytest.mark.parametrize(
    ("guarded", "others", "status"),
    [((95, 5), (85, 15), 0), ((94, 6), (85, 15), 1), ((95, 5), (84, 16), 1), ((0, 0), (1, 0), 0)],
)
def test_too_few_killed_of_either_kind_fails(
    guarded: tuple[int, int], others: tuple[int, int], status: int
) -> None:
    def tried(path: str, counts: tuple[int, int]) -> list[tuple[Candidate, bool]]:
        candidate = Candidate(Path(path), Mutant(1, "", "", ""))
        return [(candidate, True)] * counts[0] + [(candidate, False)] * counts[1]

    assert report([*tried("host/proxies.py", guarded), *tried("mcp/turns.py", others)]) == status
