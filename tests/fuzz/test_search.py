"""Fuzzing: the kept inputs hold, and a search keeps an input that breaks something."""

import asyncio
import importlib.util
import random
from pathlib import Path

import pytest

from tests.fuzz import __main__ as command
from tests.fuzz.corpus import HERE, Corpus
from tests.fuzz.http_connection import check, cut
from tests.fuzz.search import repeat
from tests.fuzz.targets import TARGETS

KEPT = [(target, name) for target in TARGETS for name in Corpus(HERE / target).read()]
needs_atheris = pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="atheris is installed by `make fuzz`"
)


@pytest.mark.parametrize(("target", "name"), KEPT)
def test_what_was_found_once_holds(target: str, name: str) -> None:
    data = Corpus(HERE / target).read()[name]

    asyncio.run(TARGETS[target].judge(data))
    for seed in range(3):
        asyncio.run(TARGETS[target].check(data, seed))


def test_an_endless_head_may_be_refused_as_broken_or_as_too_long() -> None:
    # The mistake lies within a slice of the limit, so some cuts reach the limit before it and some do not.
    for size in range(129_000, 133_000, 500):
        asyncio.run(check(b"GET / HTTP/1.1\r\nA: " + b"x" * size + b"\0", size))


def test_too_many_headers_with_a_mistake_may_be_refused_for_either() -> None:
    # The 129th header is reported when a piece ends within the name after it, which the mistake prevents.
    for seed in range(8):
        asyncio.run(check(b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 129 + b"CCCCCCCCCCCCCCCCCCCC\0", seed))


def test_every_target_can_be_chosen() -> None:
    assert set(command.TARGETS) == set(TARGETS)


@needs_atheris
@pytest.mark.parametrize("target", TARGETS)
def test_a_short_search_finds_nothing(target: str, tmp_path: Path) -> None:
    assert command.search(target, tmp_path / "search", ["-runs=300", "-seed=1"], tmp_path / "corpus")
    assert not (tmp_path / "corpus").exists()


@needs_atheris
def test_an_input_that_breaks_something_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # sitecustomize is the way into the process of the search.
    (tmp_path / "sitecustomize.py").write_text(
        "import bridgehead.mcp.errors\nbridgehead.mcp.errors.PARSE_ERROR = 1\n", encoding="utf-8"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")

    is_good = command.search("jsonrpc", tmp_path / "search", ["-runs=5000", "-seed=1"], tmp_path / "corpus")

    assert not is_good
    assert len(Corpus(tmp_path / "corpus" / "jsonrpc").read()) == 1


def test_a_part_of_an_input_is_repeated() -> None:
    repeated = {repeat(b"[]", random.Random(seed)) for seed in range(20)}  # noqa: S311

    assert b"[" * 65 + b"]" in repeated
    assert all(data.startswith(b"[") and data.endswith(b"]") for data in repeated)


def test_a_corpus_gives_back_what_it_was_given(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)
    corpus.add(b"a\r\n\x00")
    corpus.add(b"a\r\n\x00")
    corpus.add(b"b")

    assert sorted(corpus.read().values()) == [b"a\r\n\x00", b"b"]


def test_pieces_are_the_whole_again_and_a_seed_repeats_them() -> None:
    data = b"something to be cut"
    pieces = cut(data, random.Random(7))  # noqa: S311 - to be repeated, not to be secret

    assert b"".join(pieces) == data
    assert cut(data, random.Random(7)) == pieces  # noqa: S311
