"""The manifest of a bridge that imports nothing of Bridgehead but its public face."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from bridgehead.mcp import Arguments, Bridge, Context
from bridgehead.runtime.manifest import FarSide, FormField, Manifest
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


def far_side(_state: Any) -> FarSide:
    """Say that there is always weather."""
    return FarSide(is_up=True, detail="There is always weather.")


manifest = Manifest(
    package=__package__,
    name="weather",
    title="Weather",
    summary="the weather of a city",
    description="What the weather is like in a city.",
    settings=WeatherSettings,
    make=make,
    far_side=far_side,
    form=(FormField("WEATHER_CITY", "City"),),
    api=API,
)
