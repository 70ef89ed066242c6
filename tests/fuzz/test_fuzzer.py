"""Fuzzer: the kept inputs hold, a short search finds nothing, and what is broken would be found and kept."""

import asyncio
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.fuzz import fuzzer
from tests.fuzz.corpus import HERE, Corpus
from tests.fuzz.fuzzer import TARGETS, Fuzzer, Target
from tests.fuzz.mutator import Mutator, cut

KEPT = [(target, name) for target in TARGETS for name in Corpus(HERE / target).read()]
INPUTS = 300


@pytest.mark.parametrize(("target", "name"), KEPT)
def test_what_was_found_once_holds(target: str, name: str) -> None:
    data = Corpus(HERE / target).read()[name]

    for seed in range(3):
        asyncio.run(TARGETS[target].check(data, seed))


@pytest.mark.parametrize("target", TARGETS)
def test_a_short_search_finds_nothing(target: str) -> None:
    kept = list(Corpus(HERE / target).read().values())

    found = Fuzzer(TARGETS[target], seed=1).run(kept, lambda findings: findings.inputs >= INPUTS)

    assert found.failures == []


async def _fail_at_a_mark(data: bytes, seed: int) -> None:
    if b"!" in data:
        raise ValueError(_describe(data))


def _describe(data: bytes) -> str:
    """Have lines of its own for an input that is unlike the others."""
    if data.startswith(b"?"):
        return "a question"
    return "a remark"


async def _describe_all(data: bytes, seed: int) -> None:
    _describe(data)


def _this_module() -> ModuleType:
    module = ModuleType("this")
    module.__file__ = __file__
    return module


def test_an_input_that_breaks_something_is_found() -> None:
    target = Target("mark", _fail_at_a_mark, (), (b"plain",), (b"!",))

    found = Fuzzer(target, seed=1).run([], lambda findings: findings.inputs > 1000)

    assert [b"!" in data for data, _ in found.failures] == [True]


def test_an_input_that_reaches_a_new_line_is_kept_in_its_shortest_form() -> None:
    target = Target("lines", _describe_all, (_this_module(),), (b"a long remark about nothing",), (b"?",))

    found = Fuzzer(target, seed=1).run([], lambda findings: findings.inputs > 2000)

    assert found.new == [b"?"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no alarm")
def test_an_input_that_hangs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(data: bytes, seed: int) -> None:
        while True:
            pass

    monkeypatch.setattr(fuzzer, "HANG_SECONDS", 1)
    found = Fuzzer(Target("hang", hang, (), (b"x",), ()), seed=1).run([], lambda _: True)

    assert [type(problem) for _, problem in found.failures] == [fuzzer.Hangs]


def test_a_corpus_gives_back_what_it_was_given(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)
    corpus.add(b"a\r\n\x00")
    corpus.add(b"a\r\n\x00")
    corpus.add(b"b")

    assert sorted(corpus.read().values()) == [b"a\r\n\x00", b"b"]


def test_pieces_are_the_whole_again_and_a_seed_repeats_them() -> None:
    dice = random.Random(7)  # noqa: S311 - to be repeated, not to be secret
    data = Mutator(dice, (b"word",)).mutate([b"something known"])

    assert b"".join(cut(data, dice)) == data
    assert Mutator(random.Random(7), (b"word",)).mutate([b"something known"]) == data  # noqa: S311
