"""What `bridgehead demo weather` shows, and a trial for the release checks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from bridgehead.runtime.manifest import Trial


def show_demo(console: Console) -> bool:
    """Show the weather."""
    console.print("The weather: rain.")
    return True


@contextmanager
def trial(folder: Path) -> Iterator[Trial]:
    """Need nothing."""
    yield Trial({"WEATHER_CITY": folder.name}, "get_weather", folder.name)
