"""MCP servers, called bridges, on a protocol engine of their own.

Owns the version number, which the build reads from this file. Exports nothing else: import what you need
from the package that owns it, so that a server loads only what it uses.
"""

import sys as _sys

__version__ = "0.1.0"


def _load_msgspec() -> None:
    """Load msgspec without typing_extensions, which it uses where that is installed.

    With it comes inspect: together a tenth of a cold start and 1 MB of memory. Since Python 3.11 `typing` has
    all that msgspec looks for there.
    """
    if {"msgspec", "typing_extensions"} & _sys.modules.keys():
        return
    _sys.modules["typing_extensions"] = None  # type: ignore[assignment] # what is None cannot be imported
    try:
        import msgspec  # noqa: F401
    finally:
        del _sys.modules["typing_extensions"]


_load_msgspec()
