"""Listing: every entry is on one page, pages have 50, and a filter leaves what has its words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.host.auth.rejection import HostRejection
from bridgehead.host.dashboard.listing import PAGE_SIZE, Listing


@given(count=st.integers(0, 260))
def test_every_entry_is_on_exactly_one_page_and_the_links_lead_through_all(count: int) -> None:
    items = list(range(count))
    seen: list[int] = []
    address = "/x"
    while address:
        _, _, query = address.partition("?")
        part = Listing("/x", dict(pair.split("=") for pair in query.split("&") if pair)).page(items, "rows")
        assert len(part.items) <= PAGE_SIZE
        assert part.total == count
        seen += part.items
        address = part.next

    assert seen == items


def test_a_page_beyond_the_last_is_the_last_and_keeps_the_filter() -> None:
    part = Listing("/x", {"q": "a b", "rows": "99"}).page(list(range(60)), "rows")

    assert (part.first, part.last, part.next) == (51, 60, "")
    assert part.previous == "/x?q=a+b"


@pytest.mark.parametrize("page", ["0", "-1", "x", "", "²", "1" * 10])
def test_a_page_that_is_no_number_is_refused(page: str) -> None:
    with pytest.raises(HostRejection, match="There is no page"):
        Listing("/x", {"rows": page}).page([], "rows")


def test_a_filter_finds_a_word_in_any_case() -> None:
    listing = Listing("/x", {"q": " ALI "})

    assert listing.matching(["alice", "bob", "natalie"], lambda name: [name]) == ["alice", "natalie"]
    assert Listing("/x", {}).matching(["alice", "bob"], lambda name: [name]) == ["alice", "bob"]
