"""The shapes of the API: what is refused before it is handled value by value."""

import msgspec
import pytest

from bridgehead.mercury.api import wire


@pytest.mark.parametrize(
    "body",
    [b"[" + b"1," * wire.MAX_VALUES + b"1]", b'"' + b"x" * wire.MAX_SEARCHED_BYTES + b'"'],
    ids=["many values", "many bytes"],
)
def test_what_would_be_handled_value_by_value_is_bounded(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        wire.check_cost(body)


def test_a_large_answer_of_the_right_form_is_decoded_whatever_its_size() -> None:
    vector = ",".join(["0.5"] * 300_000)
    answer = wire.read_completion(b'{"data":[{"embedding":[%b]}]}' % vector.encode())

    assert answer.data is not None
    assert len(answer.data[0].embedding) == 300_000
