"""URI templates of resources: matching a URI and taking its variables out.

The part of RFC 6570 that resources use: `{name}` stands for one path segment, `{+name}` for any number of
them and may stand only once. Values are percent-decoded. A match takes time in proportion to the length of
the URI, whatever the URI.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

# A string, not a compiled pattern: a server without templates need not compile it.
_VARIABLE = r"\{(\+?)([A-Za-z_]\w*)\}"


class UriTemplate:
    """A template, cut into the literal parts and the variables between them."""

    def __init__(self, template: str) -> None:
        self.template = template
        pieces = re.split(_VARIABLE, template)
        self._literals, pluses, names = pieces[0::3], pieces[1::3], pieces[2::3]
        self.variables = tuple(names)
        if (
            not names
            or len(set(names)) != len(names)
            or any(set(part) & {"{", "}"} for part in self._literals)
        ):
            message = f"{template!r} needs at least one variable ({{name}} or {{+path}}), each named once"
            raise ValueError(message)
        if pluses.count("+") > 1:
            message = f"{template!r} may have one variable of the kind {{+path}}"
            raise ValueError(message)
        self._open = pluses.index("+") if "+" in pluses else len(names)
        """Index of the variable that may span segments; others are matched from the left up to it, from the
        right after it."""

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the values of the variables, or None if the URI does not match."""
        first, last = self._literals[0], self._literals[-1]
        if not uri.startswith(first) or not uri.endswith(last) or len(uri) < len(first) + len(last):
            return None
        start, end = len(first), len(uri) - len(last)
        before: list[str] = []
        for literal in self._literals[1 : self._open + 1]:
            place = end if len(before) + 1 == len(self.variables) else uri.find(literal, start + 1, end)
            if not _is_segment(uri, start, place):
                return None
            before.append(uri[start:place])
            start = place + len(literal)
        after: list[str] = []
        for literal in reversed(self._literals[self._open + 1 : -1]):
            place = uri.rfind(literal, start, end - 1)
            if not _is_segment(uri, place + len(literal), end):
                return None
            after.insert(0, uri[place + len(literal) : end])
            end = place
        values = before
        if self._open < len(self.variables):  # the rest, slashes included, is the open variable
            if start >= end:
                return None
            values = [*before, uri[start:end], *after]

        return dict(zip(self.variables, map(unquote, values), strict=True))


def _is_segment(uri: str, start: int, end: int) -> bool:
    """Whether the part between two offsets is one path segment: not empty, no slash."""
    return start < end and "/" not in uri[start:end]
