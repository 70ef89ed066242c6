"""URI templates of resources: matching a URI and taking its variables out.

The part of RFC 6570 that resources use: `{name}` stands for one path segment, `{+name}` for any number of
them and may stand only once. Values are percent-decoded. A match takes time in proportion to the length of
the URI, whatever the URI.
"""

from __future__ import annotations

import re

_VARIABLE = r"\{(\+?)([A-Za-z_]\w*)\}"  # compiled with the first template, of which a server may have none


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
        """Which variable may span segments: those before it are found from the left, those after it from the
        right."""

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the variables' values, or None where the URI is not of this template."""
        values = self._values(uri)
        if values is None:
            return None
        from urllib.parse import unquote  # not needed for a handshake, and slow to import

        return dict(zip(self.variables, map(unquote, values), strict=True))

    def _values(self, uri: str) -> list[str] | None:
        first, last = self._literals[0], self._literals[-1]
        if not uri.startswith(first) or not uri.endswith(last) or len(uri) < len(first) + len(last):
            return None
        start, end = len(first), len(uri) - len(last)
        before: list[str] = []
        for literal in self._literals[1 : self._open + 1]:
            found = end if len(before) + 1 == len(self.variables) else uri.find(literal, start + 1, end)
            if not _is_segment(uri, start, found):
                return None
            before.append(uri[start:found])
            start = found + len(literal)
        after: list[str] = []
        for literal in reversed(self._literals[self._open + 1 : -1]):
            found = uri.rfind(literal, start, end - 1)
            if not _is_segment(uri, found + len(literal), end):
                return None
            after.insert(0, uri[found + len(literal) : end])
            end = found
        if self._open == len(self.variables):
            return before
        return [*before, uri[start:end], *after] if start < end else None


def _is_segment(uri: str, start: int, end: int) -> bool:
    """Tell whether something stands between two places, and no slash."""
    return start < end and "/" not in uri[start:end]
