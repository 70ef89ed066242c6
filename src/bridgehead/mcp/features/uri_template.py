"""URI templates of resources: matching a URI and taking its variables out.

The part of RFC 6570 that resources use: `{name}` stands for one path segment; `{+name}`, also written
`{name*}`, for any number of them, and may stand only once; `{?q,page}` at the end for members of the query,
each of which may be missing. Values are percent-decoded. A match takes time in proportion to the length of
the URI, whatever the URI.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote

from ..errors import DeclarationError

# Strings, not compiled patterns: a server without templates need not compile them.
_VARIABLE = r"\{(\+?)([A-Za-z_]\w*)(\*?)\}"
_QUERY = r"\{\?([A-Za-z_]\w*(?:,[A-Za-z_]\w*)*)\}$"
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]*"
_MAX_QUERY = 100
"""Members of a query that are read."""


def check_uri(uri: str) -> None:
    """Refuse text that is no URI, or a template where a URI is expected."""
    if not re.fullmatch(_SCHEME, uri):
        raise DeclarationError(f"{uri!r} is not a URI. Begin it with a scheme, as in notes://today.")
    if "{" in uri or "}" in uri:
        raise DeclarationError(f"{uri!r} is a template of URIs. Declare it with bridge.template.")


class UriTemplate:
    """A template, cut into the literal parts and the variables between them."""

    def __init__(self, template: str) -> None:
        self.template = template
        query = re.search(_QUERY, template)
        self.query = tuple(query[1].split(",")) if query else ()
        """The variables that a URI may leave out."""
        pieces = re.split(_VARIABLE, template[: query.start()] if query else template)
        self._literals, pluses, names, stars = pieces[0::4], pieces[1::4], pieces[2::4], pieces[3::4]
        self._names = tuple(names)
        self.variables = (*names, *self.query)
        if (
            not self.variables
            or len(set(self.variables)) != len(self.variables)
            or any(set(part) & {"{", "}"} for part in self._literals)
        ):
            raise DeclarationError(
                f"{template!r} needs a variable, each named once: {{name}}, {{+path}} or {{path*}}, "
                "and {?query} at the end."
            )
        if not re.fullmatch(_SCHEME, self._literals[0] + "x"):
            raise DeclarationError(
                f"{template!r} is not a URI. Begin it with a scheme, as in notes://{{day}}."
            )
        is_open = [bool(plus or star) for plus, star in zip(pluses, stars, strict=True)]
        if is_open.count(True) > 1:
            raise DeclarationError(f"{template!r} may have one variable of the kind {{+path}} or {{path*}}.")
        self._open = is_open.index(True) if True in is_open else len(names)
        """Index of the variable that may span segments; others are matched from the left up to it, from the
        right after it."""

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the values of the variables, or None if the URI does not match."""
        if not self.query:
            return self._match_path(uri)
        path, _, query = uri.partition("?")
        try:
            given = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=_MAX_QUERY))
        except ValueError:
            return None
        if not given.keys() <= set(self.query):
            return None
        values = self._match_path(path)
        return None if values is None else values | given

    def _match_path(self, uri: str) -> dict[str, str] | None:
        first, last = self._literals[0], self._literals[-1]
        if not self._names:
            return {} if uri == first else None
        if not uri.startswith(first) or not uri.endswith(last) or len(uri) < len(first) + len(last):
            return None
        start, end = len(first), len(uri) - len(last)
        before: list[str] = []
        for literal in self._literals[1 : self._open + 1]:
            place = end if len(before) + 1 == len(self._names) else uri.find(literal, start + 1, end)
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
        if self._open < len(self._names):  # the rest, slashes included, is the open variable
            if start >= end:
                return None
            values = [*before, uri[start:end], *after]

        return dict(zip(self._names, map(unquote, values), strict=True))


def _is_segment(uri: str, start: int, end: int) -> bool:
    """Whether the part between two offsets is one path segment: not empty, no slash."""
    return start < end and "/" not in uri[start:end]
