"""The manifest of a bridge that imports nothing of Bridgehead but its public face."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta
from rich.console import Console

from bridgehead.mcp import Arguments, Bridge, Context
from bridgehead.runtime.command_line import Parser
from bridgehead.runtime.findings import Finding
from bridgehead.runtime.manifest import Commands, FarSide, FormField, Manifest, Trial
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.settings import TEXT, Setting, Settings

API = 1

print("A plugin may print when it is imported.")  # noqa: T201


class WeatherSettings(Settings):
    """What can be set."""

    city = Setting("WEATHER_CITY", TEXT, "Ghent", "The city that is meant where none is named.")
    key = Setting("WEATHER_KEY", TEXT, "", "The key of the service.", secret=True)


class Where(Arguments):
    """Where to look."""

    city: Annotated[str, Meta(description="The city; the one that is set if left empty")] = ""


def make(settings: WeatherSettings, _metrics: Metrics | None) -> Bridge[None]:
    """Make the bridge."""
    bridge: Bridge[None] = Bridge("weather", "1.2.0", title="Weather")

    @bridge.tool("Says what the weather is like.", read_only=True)
    def get_weather(args: Where, ctx: Context[None]) -> str:
        return f"It rains in {args.city or settings.city}."

    return bridge


async def examine(environment: Mapping[str, str]) -> list[Finding]:
    """Say what the plugin was given of the environment."""
    return [Finding("environment", "right", ",".join(sorted(environment)) or "nothing")]


def demo(console: Console) -> bool:
    """Show the weather."""
    console.print("The weather: rain.")
    return True


@contextmanager
def trial(folder: Path) -> Iterator[Trial]:
    """Need nothing."""
    yield Trial({"WEATHER_CITY": folder.name}, "get_weather", folder.name)


class WeatherCommands:
    """`bridgehead weather today`."""

    def parser(self) -> Parser:
        """Return the parser."""
        found = Parser(prog="bridgehead weather")
        commands = found.add_subparsers(dest="command", required=True)
        commands.add_parser("today").add_argument("--unit", choices=("celsius", "kelvin"))
        return found

    def main(self, arguments: list[str], environment: Mapping[str, str]) -> int:
        """Say what the weather is like."""
        self.parser().parse_args(arguments)
        Console().print(f"rain, {environment.get('AOC_YEAR', 'this year')}, pid {os.getpid()}")
        return 0


def load_commands() -> Commands:
    """Give the commands."""
    return WeatherCommands()


def far_side(_state: Any) -> FarSide:
    """Say that there is always weather."""
    return FarSide(is_there=True, says="There is always weather.")


manifest = Manifest(
    name="weather",
    title="Weather",
    summary="the weather of a city",
    description="What the weather is like in a city.",
    settings=WeatherSettings,
    make=make,
    far_side=far_side,
    doctor=examine,
    demo=demo,
    trial=trial,
    commands=load_commands,
    form=(FormField("WEATHER_CITY", "City"),),
    api=API,
)
