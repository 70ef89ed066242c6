"""Words: the same text for the same seed, in tokens that join to what they were cut from."""

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from bridgehead.mercury.simulator import words


def test_a_seed_always_tells_the_same_story_and_another_seed_another() -> None:
    stories = ["".join(islice(words.prose(seed), 60)) for seed in (1, 1, 2)]

    assert stories[0] == stories[1] != stories[2]
    assert words.sentences(1, 2) == list(islice(words.prose(1), len(words.sentences(1, 2))))
    assert "".join(words.sentences(1, 2)).count(".") == 2


@given(st.text())
def test_tokens_join_to_the_text_that_was_cut(text: str) -> None:
    tokens = words.split(text)

    assert "".join(tokens) == text
    assert all(0 < len(token) <= 8 for token in tokens)


def test_code_that_is_filled_in_can_be_run() -> None:
    prompt, suffix = "def total(values):\n    ", "\n    return result\n"
    body, _, _ = "".join(words.code(prompt, suffix)).partition("\n\n")
    scope: dict[str, object] = {}
    exec(prompt + body + suffix + "\nfound = total([1, 2, 3])", scope)  # noqa: S102 - what is to be shown

    assert scope["found"] == 6


def test_the_tokens_of_a_text_are_estimated_by_its_length() -> None:
    assert [words.count(text) for text in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]
