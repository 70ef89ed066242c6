"""Env file: settings from a file named `.env`, for whoever keeps them beside a project.

The environment itself always wins. A file that came with somebody else's project must not send a key of this
user's elsewhere: an address that receives a key counts only where the key itself is in the same file, and not
where it is in the environment or in a third file that this one names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .errors import BridgeError
from .settings import PATH, Setting

NAME = ".env"
_QUOTES = ("'", '"')


class EnvFileError(BridgeError):
    """A line of the file cannot be read."""

    code = "env_file"


def parse(text: str) -> dict[str, str]:
    """Read `NAME=value` lines; empty lines, comments, `export` and quotes are understood."""
    found: dict[str, str] = {}
    for number, line in _entries(text.lstrip("\ufeff").splitlines()):
        stripped = line.strip().removeprefix("export ").strip()
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = stripped.partition("=")
        if not equals or not name.strip().isidentifier():
            raise EnvFileError(
                f"{NAME}, line {number} is not NAME=value.",
                next_step="Fix the line, or comment it out with #.",
            )
        found[name.strip()] = _value(value.strip())
    return found


def _entries(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Give each entry with the number of its line; a value in quotes may go on over several lines."""
    at = 0
    while at < len(lines):
        end = _end_of_entry(lines, at)
        yield at + 1, "\n".join(lines[at : end + 1])
        at = end + 1


def _end_of_entry(lines: list[str], at: int) -> int:
    value = lines[at].partition("=")[2].strip()
    quote = value[:1]
    if lines[at].lstrip().startswith("#") or quote not in _QUOTES or quote in value[1:]:
        return at
    return next((end for end in range(at + 1, len(lines)) if lines[end].rstrip().endswith(quote)), at)


def read() -> dict[str, str]:
    """Read the file in the current folder, where there is one."""
    import os

    if not os.path.isfile(NAME):  # noqa: PTH113 - pathlib would delay a server's first answer
        return {}
    try:
        with open(NAME, encoding="utf-8") as file:  # noqa: PTH123 - the same
            return parse(file.read())
    except (OSError, ValueError) as failure:
        raise EnvFileError(f"{NAME} cannot be read: {failure}.") from failure


def _value(text: str) -> str:
    end = text.find(text[0], 1) if text.startswith(_QUOTES) else -1
    if end > 0:
        return text[1:end]
    return text.partition(" #")[0].rstrip()


class Environment(dict[str, str]):
    """Everything that is set, and which of it the file set."""

    from_file: frozenset[str] = frozenset()


def merge(environment: Mapping[str, str], found: Mapping[str, str]) -> Environment:
    """Put the file under the environment."""
    merged = Environment({**found, **environment})
    merged.from_file = frozenset(found) - frozenset(environment)
    return merged


def reread(environment: Mapping[str, str]) -> Environment:
    """Read the file again, under the same environment."""
    from_file: frozenset[str] = getattr(environment, "from_file", frozenset())
    return merge({name: value for name, value in environment.items() if name not in from_file}, read())


def narrow(environment: Mapping[str, str], declared: Iterable[Setting[Any]]) -> Environment:
    """Keep what one part of the product has declared, without an address that must not receive its secret."""
    from_file: frozenset[str] = getattr(environment, "from_file", frozenset())
    own = {setting.name: setting for setting in declared if setting.name in environment}

    def is_foreign(secret: str) -> bool:
        is_in_a_third_file = secret in own and own[secret].kind is PATH
        return bool(environment.get(secret)) and (secret not in from_file or is_in_a_third_file)

    narrowed = Environment(
        (name, environment[name])
        for name, setting in own.items()
        if name not in from_file or not any(map(is_foreign, setting.receives))
    )
    narrowed.from_file = from_file & narrowed.keys()
    return narrowed
