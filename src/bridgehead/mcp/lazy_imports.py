"""Lazy imports: modules that are loaded when they are first used, not when they are named.

A stdio server answers `initialize` before it has an event loop. asyncio takes longer to import than all the
rest together, and the client need not wait for it. Import from here what must not be on the way to that first
answer; everything else is imported the usual way.
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
        """Stands for a module; an attribute that was asked for once is at hand from then on."""

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
