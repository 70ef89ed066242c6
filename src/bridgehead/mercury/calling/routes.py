"""Routes: which provider and model a call goes to, by the name it gives, its tool, its client and its size.

Read from one TOML file. The first route that fits a call is taken; its first target is asked, the others only
when that one fails before it has answered and cannot have billed. Pure, but for reading the file.

    [providers.local]
    url = "http://127.0.0.1:11434/v1"

    [[routes]]
    model = "fast"
    to = ["local/qwen3", "mercury/mercury-2"]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Protocol

import msgspec
from msgspec import Meta, Struct

from bridgehead.runtime.settings import SettingError

if TYPE_CHECKING:
    from pathlib import Path

MERCURY = "mercury"
"""The provider that the settings describe."""
_VARIABLE = "MERCURY_ROUTES_FILE"
_TOKENS = 1_000_000

Name = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
Money = Annotated[float, Meta(ge=0)]


class ModelTerms(Struct, forbid_unknown_fields=True, frozen=True):
    """What a model costs, in US dollars for a million tokens, and how long its answers can get."""

    prompt_usd: Money
    completion_usd: Money
    max_output: Annotated[int, Meta(ge=1)] | None = None

    @property
    def prices(self) -> tuple[float, float, float]:
        """The prices of a token: of a prompt, of an answer, of a prompt that the provider has cached."""
        prompt = self.prompt_usd / _TOKENS
        return prompt, self.completion_usd / _TOKENS, prompt


class ProviderEntry(Struct, forbid_unknown_fields=True, frozen=True):
    """An OpenAI-compatible API."""

    url: str
    key: str = "EMPTY"
    """Servers without keys take any."""
    key_file: str = ""
    requests_per_minute: Annotated[int, Meta(ge=1)] | None = None
    models: dict[str, ModelTerms] = {}


class Routed(Protocol):
    """A call as far as routes look at it."""

    model: str
    tool: str
    client: str
    body: bytes
    is_model_named: bool


class Target(Struct, frozen=True):
    """A model of a provider; an empty model is the one that was asked for."""

    provider: str
    model: str


class Route(Struct, forbid_unknown_fields=True, frozen=True):
    """Conditions that all have to fit, and where a call that fits them goes."""

    to: Annotated[list[str], Meta(min_length=1)]
    model: str = ""
    tool: str = ""
    client: str = ""
    min_bytes: Annotated[int, Meta(ge=0)] = 0
    max_bytes: Annotated[int, Meta(ge=0)] | None = None

    @property
    def targets(self) -> list[Target]:
        """Where calls go, in the order in which they are tried."""
        return [Target(provider, model) for provider, _, model in (place.partition("/") for place in self.to)]

    def fits(self, call: Routed) -> bool:
        """Tell whether a call takes this route. One without a model is for calls that name none."""
        if call.is_model_named and not self.model:
            return False
        size = len(call.body)
        return (
            _matches(self.model, call.model)
            and _matches(self.tool, call.tool)
            and _matches(self.client, call.client)
            and self.min_bytes <= size
            and (self.max_bytes is None or size <= self.max_bytes)
        )


class Routes(Struct, forbid_unknown_fields=True, frozen=True):
    """The file."""

    providers: dict[Name, ProviderEntry] = {}
    routes: list[Route] = []

    @property
    def names(self) -> tuple[str, ...]:
        """The model names that routes make up; patterns are not among them."""
        names = (route.model for route in self.routes if route.model and not set("*?[") & set(route.model))
        return tuple(dict.fromkeys(names))

    def find(self, call: Routed) -> list[Target]:
        """Return where a call goes: the model of the settings' own provider where no route fits."""
        route = next((route for route in self.routes if route.fits(call)), None)
        return [Target(MERCURY, "")] if route is None else route.targets


def read_routes(file: Path | None) -> Routes:
    """Read the file; raises SettingError, which says what is wrong with it."""
    if file is None:
        return Routes()
    import tomllib

    try:
        found = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8-sig")), Routes)
    except OSError as problem:
        raise SettingError(_VARIABLE, str(file), f"a file that can be read ({problem.strerror})") from None
    except ValueError as problem:  # TOML that is none, text that is none, and what does not fit
        raise SettingError(_VARIABLE, str(file), f"a routes file ({problem})") from None
    for number, route in enumerate(found.routes, 1):
        for target in route.targets:
            if target.provider != MERCURY and target.provider not in found.providers:
                known = ", ".join((MERCURY, *found.providers))
                wanted = f"a routes file (route {number} goes to {target.provider!r}; there are {known})"
                raise SettingError(_VARIABLE, str(file), wanted)
    return found


def _matches(pattern: str, value: str) -> bool:
    if not pattern or pattern == value:
        return True
    from fnmatch import fnmatchcase

    return fnmatchcase(value, pattern)
