"""Settings: environment variables, read once, checked, and documented where they are declared.

    class Example(Settings):
        year = Setting("EXAMPLE_YEAR", whole(2015, 2099), 2025, "The event that is served.")

    Example({"EXAMPLE_YEAR": "2024"}).year  # 2024

A variable that is unset or empty takes its default. An invalid one raises `SettingError`, which names the
variable, the value and what was expected. The documents, `.env.example` and `doctor` are generated from the
declarations.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

from msgspec import Struct

from .errors import BridgeError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

# As npm's `bytes` reads `MAX_REQUEST_SIZE=1mb`: a step is 1024, with and without the i.
_SIZES = {"b": 1} | {f"{letter}{i}b": 1024**power for power, letter in enumerate("kmg", 1) for i in ("", "i")}
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")
_CREDENTIALS = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*://)[^\s/@]+@")


class SettingError(BridgeError):
    """The value of a setting is invalid."""

    code = "setting"

    def __init__(
        self, name: str, value: str, wanted: str, *, is_secret: bool = False, noun: str = "value"
    ) -> None:
        quoted = repr(hide_credentials(value)).replace("\\\\", "\\")  # paths of Windows stay readable
        hidden = f"{name} is not a valid {noun}: expected {wanted}."
        super().__init__(hidden if is_secret else f"{name} is {quoted}: expected {wanted}.")
        self.name = name
        self.without_value = hidden
        """The message for people who did not set it."""


class Kind(Struct, Generic[T_co], frozen=True):
    """How to parse a variable's text, and what to expect in the error message."""

    parse: Callable[[str], T_co]
    """Raises ValueError if the text is invalid."""
    wanted: str
    noun: str = "value"


class Setting(Generic[T]):
    """One variable: its name, kind, default, and a sentence for the user."""

    def __init__(
        self,
        name: str,
        kind: Kind[T],
        default: T,
        about: str,
        *,
        secret: bool = False,
        shown: str | None = None,
        receives: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.kind = kind
        self.default = default
        self.about = about
        self.is_secret = secret
        self.receives = receives
        """The secrets, or files with secrets, that are sent to this address; see `env_file.narrow`."""
        self.shown_default = shown if shown is not None else _shown(default)

    def read(self, environment: Mapping[str, str]) -> T:
        """Return the value in an environment, or the default."""
        text = environment.get(self.name, "").strip()
        if not text:
            return self.default
        try:
            return self.kind.parse(text)
        except ValueError:
            raise SettingError(
                self.name, text, self.kind.wanted, is_secret=self.is_secret, noun=self.kind.noun
            ) from None

    def accepts(self, text: str) -> bool:
        """Tell whether a text is a valid value."""
        try:
            self.kind.parse(text.strip())
        except ValueError:
            return False
        return True

    @overload
    def __get__(self, settings: None, owner: type) -> Self: ...
    @overload
    def __get__(self, settings: Settings, owner: type) -> T: ...
    def __get__(self, settings: Settings | None, owner: type) -> Self | T:
        if settings is None:
            return self
        value: T = settings.values[self.name]
        return value

    def __set__(self, settings: Settings, value: T) -> None:
        raise AttributeError(f"{self.name} is read once and stays as it is")


class Settings:
    """The settings of one part of the product, read from an environment."""

    declared: ClassVar[tuple[Setting[Any], ...]] = ()
    common: ClassVar[tuple[str, ...]] = ()
    """The variables that people set most; a list of all settings begins with them."""
    removed: ClassVar[tuple[str, ...]] = ()
    """Variables of the version before that are no longer read. If one is set, a start and `doctor` say so."""

    def __init_subclass__(cls) -> None:
        # In method resolution order: a class may have several parents and may redeclare a setting.
        declared = {
            attribute: value
            for owner in reversed(cls.__mro__)
            for attribute, value in vars(owner).items()
            if isinstance(value, Setting)
        }
        cls.declared = tuple(declared.values())

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.values = {setting.name: setting.read(environment) for setting in self.declared}
        self.configured = frozenset(name for name in self.values if environment.get(name, "").strip())
        """The names that the environment sets; all others have their default."""
        self.check()

    def check(self) -> None:
        """Refuse combinations of values that are invalid; raises SettingError."""

    def summary(self) -> Iterator[tuple[str, str]]:
        """Yield each name with its value for display; secrets are masked."""
        for setting in self.declared:
            value = self.values[setting.name]
            yield setting.name, "(set)" if setting.is_secret and value else _shown(value)

    def changes(self) -> dict[str, str]:
        """Return the values that differ from their defaults, for display."""
        return {
            name: shown
            for (name, shown), setting in zip(self.summary(), self.declared, strict=True)
            if self.values[name] != setting.default
        }


def _shown(value: object) -> str:
    return hide_credentials(_text_of(value))


def hide_credentials(text: str) -> str:
    """Hide the name and password in every address in a text: `https://***@example.com`."""
    return _CREDENTIALS.sub(r"\1***@", text) if "@" in text else text


def _text_of(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, tuple | list | frozenset):
        return ",".join(str(item) for item in value)
    return str(value)


def whole(minimum: int = 0, maximum: int = 2**53) -> Kind[int]:
    """Accept a whole number in a range, with underscores as in Python: 1_000_000."""

    def parse(text: str) -> int:
        return _within(int(text), minimum, maximum)

    return Kind(parse, f"a whole number from {minimum} to {maximum}")


def number(minimum: float, maximum: float) -> Kind[float]:
    """Accept a number in a range."""

    def parse(text: str) -> float:
        return _within(float(text), minimum, maximum)

    return Kind(parse, f"a number from {minimum:.12g} to {maximum:.12g}")


N = TypeVar("N", int, float)


def _within(value: N, minimum: float, maximum: float) -> N:
    if not minimum <= value <= maximum:
        raise ValueError(value)
    return value


def choice(*words: str) -> Kind[str]:
    """Accept one of a few words, ignoring case."""
    lowered = [word.lower() for word in words]

    def parse(text: str) -> str:
        return words[lowered.index(text.lower())]

    return Kind(parse, "one of " + ", ".join(words))


def _flag(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError(text)


def _bytes(text: str) -> int:
    digits = text.rstrip("bBkKmMgGiI ").strip()
    unit = text[len(digits) :].strip().lower() or "b"
    if unit not in _SIZES:
        raise ValueError(unit)
    return int(_within(float(digits) * _SIZES[unit], 1, 2**53))


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in (piece.strip() for piece in text.split(",")) if word)


def _path(text: str) -> Path:
    try:
        path = Path(os.path.expanduser(text)).absolute()  # noqa: PTH111 - Path.expanduser raises other errors
    except OSError:  # the folder that the path starts from was removed
        raise ValueError(text) from None
    if not path.is_absolute():  # a share without a name, which Windows alone has
        raise ValueError(text)
    return path


# --- variables that look like ours and are not -------------------------------------------------------------

PRODUCT = "BRIDGEHEAD_"
_READ_ELSEWHERE = re.compile(r"BRIDGEHEAD_(TOKEN|CACHE_DIR|RUN|TEST_\w+)")
"""Read by clients' entries, by the archive, by the sandbox and by the tests."""
_SERVICE_LINK = re.compile(r"\w+_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_\w+)")
"""What Kubernetes adds for a service that is named like a bridge; its `_PORT` is an address."""
_LONG_NAME = 12
"""Names of at least this length may differ by two letters, shorter ones by one."""


class UnusedSetting(Struct, frozen=True):
    """A variable that begins like a setting and is none, and the setting that was probably meant."""

    name: str
    meant: str
    is_removed: bool = False

    def __str__(self) -> str:
        if self.is_removed:
            return f"{self.name} is no longer a setting and has no effect. See the changelog."
        advice = f"Did you mean {self.meant}?" if self.meant else "It has no effect."
        return f"{self.name} is not a setting. {advice}"


def prefix_of_bridge(name: str) -> str:
    """Return how the variables of a bridge begin."""
    return f"{name.upper().replace('-', '_')}_"


def find_unused(
    environment: Mapping[str, str],
    declared: Iterable[Setting[Any]],
    removed: Iterable[str],
    prefixes: tuple[str, ...],
) -> list[UnusedSetting]:
    """Return every variable that is set and begins like a setting, or nearly is one, and is not declared.

    Only names that begin with one of the prefixes are ours: other programs have a LOGLEVEL too.
    """
    known = {setting.name: setting for setting in declared}
    own = [name for name in sorted(known) if name.startswith(prefixes)]
    gone = frozenset(removed)
    unused = []
    for name, value in sorted(environment.items()):
        is_link = _SERVICE_LINK.fullmatch(name) or value.startswith(("tcp://", "udp://"))
        if not value.strip() or name in known or is_link or _READ_ELSEWHERE.fullmatch(name):
            continue
        near = closest(name, own) if name.isupper() and name not in gone else ""
        if name in gone:
            unused.append(UnusedSetting(name, "", is_removed=True))
        elif near or name.startswith(prefixes):
            unused.append(UnusedSetting(name, near or _find_meant(name, value, known)))
    return unused


def _find_meant(name: str, value: str, known: Mapping[str, Setting[Any]]) -> str:
    """Return the setting that shares the words of a name, or whose sentence has them; empty if none does."""
    prefix, _, rest = name.partition("_")
    words = set(rest.split("_"))
    names = {other: set(other.split("_")) - {prefix} for other in known}
    # All of its words, and this name has more: MERCURY_DAILY_BUDGET_USD, MERCURY_REQUEST_TIMEOUT.
    within = [other for other, others in names.items() if others <= words and len(others) > 1]
    if within:
        return max(within, key=len)
    # A word is missing: MERCURY_BUDGET. Those of the host have no prefix of ours: BRIDGEHEAD_PORT.
    same = f"{prefix}_"
    near = [
        other
        for other, setting in known.items()
        if (other.startswith(same) or same == PRODUCT) and setting.accepts(value)
    ]
    around = [other for other in near if words <= names[other]]
    if around:
        return min(around, key=len)
    # Another word for it: BITBURNER_PORT.
    for other in near:
        sentence = f"{known[other].about} {known[other].kind.wanted}".upper()
        if other.startswith(same) and words <= set(re.findall(r"\w+", sentence)):
            return other
    return ""


def closest(word: str, known: Iterable[str]) -> str:
    """Return the known word that differs from this one in a letter or two; empty if there is none."""
    limit = 2 if len(word) >= _LONG_NAME else 1
    near = [
        (count_edits(word, other, limit), other) for other in known if abs(len(other) - len(word)) <= limit
    ]
    best = min(near, default=(limit + 1, ""))
    return best[1] if best[0] <= limit else ""


def count_edits(first: str, second: str, limit: int) -> int:
    """Count the letters that are missing, added, wrong or swapped; anything above the limit is limit + 1."""
    before: list[int] = []
    row = list(range(len(second) + 1))
    for at, letter in enumerate(first):
        earlier, before, row = before, row, [at + 1]
        for place, wanted in enumerate(second):
            edits = min(before[place] + (letter != wanted), before[place + 1] + 1, row[place] + 1)
            if at and place and letter == second[place - 1] and first[at - 1] == wanted:
                edits = min(edits, earlier[place - 1] + 1)
            row.append(edits)
        if min(row) > limit:
            return limit + 1
    return row[-1]


FLAG = Kind(_flag, "1 or 0 (also true or false, yes or no, on or off)")
BYTES = Kind(_bytes, "a size such as 65536, 64kb or 1mb")
WORDS = Kind(_words, "words separated by commas")
PATH = Kind(_path, "a path, preferably absolute")
TEXT = Kind(str, "a text")


def _http_url(text: str) -> str:
    scheme, separator, rest = text.partition("://")
    if scheme.lower() not in ("http", "https") or not separator or not rest.strip("/"):
        raise ValueError(text)
    return text


HTTP_URL = Kind(_http_url, "an http:// or https:// address")
