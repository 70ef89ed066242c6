"""Listing: the entries of a list that match a filter, in pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from ..auth.rejection import HostRejection
from .templates import link

PAGE_SIZE = 50
_MAX_PAGE = 9

T = TypeVar("T")


class Part(Struct, Generic[T], frozen=True):
    """One page of a list."""

    items: Sequence[T]
    total: int
    first: int
    """The place of the first entry, from 1."""
    previous: str = ""
    """The address of the page before this one; empty if this is the first."""
    next: str = ""
    pages: int = 1

    @property
    def last(self) -> int:
        """The place of the last entry."""
        return self.first + len(self.items) - 1


def read_page(query: Mapping[str, str], name: str) -> int:
    """Return the number of a page from an address, 1 without one. Raises HostRejection."""
    text = query.get(name, "1")
    if not text.isascii() or not text.isdigit() or len(text) > _MAX_PAGE or int(text) < 1:
        raise HostRejection(400, f"There is no page {text!r} of {name}. Use a number from 1.", "request")
    return int(text)


class Listing:
    """What the address of a page says of its lists: the filter `q`, and the page of each list by its name."""

    def __init__(self, path: str, query: Mapping[str, str]) -> None:
        self._path = path
        self._query = query
        self.filter = query.get("q", "").strip()

    def matching(self, items: Sequence[T], words: Callable[[T], Sequence[str]]) -> list[T]:
        """Return the items that have the filter in one of their words, whatever the case."""
        wanted = self.filter.casefold()
        return [item for item in items if any(wanted in word.casefold() for word in words(item))]

    def page(self, items: Sequence[T], name: str) -> Part[T]:
        """Return the page of a list that the address names, at most the last one. Raises HostRejection."""
        pages = max(1, -(-len(items) // PAGE_SIZE))
        number = min(read_page(self._query, name), pages)
        start = (number - 1) * PAGE_SIZE
        return Part(
            items[start : start + PAGE_SIZE],
            len(items),
            start + 1,
            self._address(name, number - 1) if number > 1 else "",
            self._address(name, number + 1) if number < pages else "",
            pages,
        )

    def _address(self, name: str, number: int) -> str:
        return link(self._path, **{**self._query, name: None if number == 1 else number})
