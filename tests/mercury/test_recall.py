"""Recall: calls that come again in the very same words, in bounded memory."""

from bridgehead.mercury.calling.call import Call
from bridgehead.mercury.calling.recall import MOST_BYTES, Recall


def call(client: str, size: int) -> Call:
    return Call("tool", "/path", "model", b"x" * size, client, 1.0, 1.0, "use", None)


def test_a_call_is_known_by_who_made_it_and_by_every_byte_of_its_arguments() -> None:
    recall = Recall()
    one = call("one", 10)
    recall.note(one, b"{}")

    assert recall.get(("one", b"{}")) is one
    assert recall.get(("other", b"{}")) is None
    assert recall.get(("one", b"{ }")) is None


def test_when_it_is_full_everything_is_forgotten_and_learnt_anew() -> None:
    recall = Recall()
    for number in range(25):
        recall.note(call("one", MOST_BYTES // 10), b"%d" % number)
        assert recall.size <= MOST_BYTES

    assert 0 < len(recall) < 10
