"""Prices: one that is only half known is not known."""

import pytest

from bridgehead.mercury.api.prices import Prices, read_price, read_prices


@pytest.mark.parametrize("price", ["nan", "-1", "inf", "free", None])
def test_a_price_that_cannot_be_counted_with_is_none(price: str | None) -> None:
    assert read_price(price) is None
    assert read_price("0.00000025") == 2.5e-7


@pytest.mark.parametrize(
    ("listed", "prices"),
    [
        ({"prompt": "1", "completion": "2"}, Prices(1, 2, 1, dearest_completion=2)),
        ({"prompt": "1", "completion": "2", "request": "3"}, Prices(1, 2, 1, 3, dearest_completion=2)),
        ({"prompt": "1", "completion": "2", "input_cache_reads": "0.5"}, Prices(1, 2, 0.5, 0, 0, 2)),
        ({"prompt": "1", "completion": "2", "input_cache_read": "0.5"}, Prices(1, 2, 0.5, 0, 0, 2)),
        (
            {"prompt": "1", "completion": "2", "input_cache_write": "4"},
            Prices(1, 2, 1, 0, 4, 2, is_exact=False),
        ),
        (
            {"prompt": "1", "completion": "2", "internal_reasoning": "3"},
            Prices(1, 2, 1, 0, 0, 3, is_exact=False),
        ),
        ({"prompt": "1", "completion": "2", "image": "9", "web_search": "9"}, Prices(1, 2, 1, 0, 0, 2)),
        ({"prompt": "1", "completion": "2", "per_minute": "0"}, Prices(1, 2, 1, 0, 0, 2)),
        ({"prompt": "1", "completion": "2", "per_minute": "3"}, None),
        ({"prompt": "1", "completion": "2", "per_minute": "much"}, None),
        ({"prompt": "1", "completion": "2", "request": "much"}, None),
        ({"prompt": "1"}, None),
        ({"prompt": "1", "completion": "-2"}, None),
        ({}, None),
    ],
)
def test_a_price_is_known_only_if_each_of_its_parts_is(listed: dict[str, str], prices: Prices | None) -> None:
    assert read_prices(listed) == prices


def test_the_worst_case_counts_what_may_be_charged_beside_the_listed_tokens() -> None:
    assert Prices(1, 2, 0.5, 3, 4, 5).worst_cost(10, 100) == 10 * 4 + 100 * 5 + 3
    assert Prices(1, 2, 0.5, 3).worst_cost(10, 100) == 10 * 1 + 100 * 2 + 3
