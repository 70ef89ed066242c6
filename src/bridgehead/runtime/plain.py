"""Plain: output to a stream that knows fewer signs than we use, as a pipe on Windows does."""

from __future__ import annotations

import codecs
from typing import TextIO

_HANDLER = "bridgehead.plain"
_PLAIN = {
    "✓": "+",
    "✗": "x",
    "•": "-",
    "→": "->",
    "…": "...",
    "×": "x",
    "“": '"',
    "”": '"',
}


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


def written_plainly(*streams: TextIO) -> None:
    """Let streams write what they cannot encode as something like it, and never fail for it."""
    codecs.register_error(_HANDLER, _replaced)
    for stream in streams:
        stream.reconfigure(errors=_HANDLER)  # type: ignore[attr-defined]  # as those that Python opens can
