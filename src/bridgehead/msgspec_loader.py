"""Loads msgspec without typing_extensions, which it uses where that is installed.

With it comes inspect: together a tenth of a cold start. Since Python 3.11 `typing` has all that msgspec looks
for there. The packages that everything else here is built on import this first.
"""

import sys

if not {"msgspec", "typing_extensions"} & sys.modules.keys():
    sys.modules["typing_extensions"] = None  # type: ignore[assignment] # what is None cannot be imported
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules["typing_extensions"]
