"""Lazy imports: standard modules that are loaded on first use.

A stdio server answers `initialize` before it has an event loop. asyncio takes longer to import than all the
rest together, and the client need not wait for it. Import these modules from here if the first answer does
not need them; import everything else the usual way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    import inspect
    import logging
    import threading
    import time

    __all__ = ["asyncio", "inspect", "logging", "threading", "time"]
else:

    class _LazyModule:
        """Stands for a module; keeps each attribute after its first use."""

        def __init__(self, name: str) -> None:
            self.__name__ = name

        def __getattr__(self, attribute: str) -> Any:
            from importlib import import_module

            value = getattr(import_module(self.__name__), attribute)
            setattr(self, attribute, value)
            return value

    asyncio = _LazyModule("asyncio")
    inspect = _LazyModule("inspect")
    logging = _LazyModule("logging")
    threading = _LazyModule("threading")
    time = _LazyModule("time")
