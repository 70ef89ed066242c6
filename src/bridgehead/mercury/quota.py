"""Quota: how much may be used within a window of time, exactly, with room held for what is under way.

Pure: the time is an argument. Room is taken before a request goes out, for the most that it may use, and
corrected when it is known what it did use.
"""

from __future__ import annotations

from collections import deque

Entry = list[float]
"""When room was taken, and how much."""


class Window:
    """A sliding window over one thing that is limited."""

    def __init__(self, most: int, seconds: float) -> None:
        self.most = most
        self._seconds = seconds
        self._entries: deque[Entry] = deque()
        self._used = 0.0

    def left(self, now: float) -> float:
        """Give how much room there is."""
        self._forget(now)
        return max(0.0, self.most - self._used)

    def delay(self, amount: float, now: float) -> float:
        """Give the seconds until there is room for an amount; 0 where there is some now."""
        self._forget(now)
        excess = self._used + amount - self.most
        if excess <= 0:
            return 0.0
        for begun, taken in self._entries:
            excess -= taken
            if excess <= 0:
                return max(begun + self._seconds - now, 0.001)
        return self._seconds

    def take(self, amount: float, now: float) -> Entry:
        """Hold room for an amount."""
        entry = [now, amount]
        self._entries.append(entry)
        self._used += amount
        return entry

    def correct(self, entry: Entry, amount: float) -> None:
        """Put what was really used in the place of what was held."""
        if self._entries and entry[0] >= self._entries[0][0]:
            self._used += amount - entry[1]
        entry[1] = amount

    def is_idle(self, now: float) -> bool:
        """Tell whether nothing is in the window."""
        self._forget(now)
        return not self._entries

    def _forget(self, now: float) -> None:
        entries = self._entries
        oldest = now - self._seconds
        while entries and entries[0][0] <= oldest:
            self._used -= entries.popleft()[1]
        if not entries:
            self._used = 0.0
