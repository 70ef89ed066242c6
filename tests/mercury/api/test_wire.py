"""The shapes of the API, read tolerantly."""

import pytest

from bridgehead.mercury.api import wire


@pytest.mark.parametrize("price", ["nan", "-1", "inf", "free", None])
def test_a_price_that_cannot_be_counted_with_is_none(price: str | None) -> None:
    assert wire.read_price(price) is None
    assert wire.read_price("0.00000025") == 2.5e-7
