"""Env file: reads settings from `.env` in the current folder. The environment always wins.

A `.env` may come with someone else's project and must not redirect this user's keys. So an address that
receives a key counts only if the key is in the same file, not in the environment or in a file that it names.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from .errors import BridgeError
from .lines import split_lines
from .settings import PATH, Setting

NAME = ".env"
_QUOTES = ("'", '"')


class EnvFileError(BridgeError):
    """A line of the file cannot be read."""

    code = "env_file"


def parse(text: str) -> dict[str, str]:
    """Parse `NAME=value` lines with comments, `export` and quotes; a quoted value may span lines."""
    values: dict[str, str] = {}
    lines = split_lines(text.lstrip("\ufeff"))
    following = 0
    while following < len(lines):
        start = following
        line, following = lines[start], start + 1
        opening = line.partition("=")[2].strip()
        quote = opening[:1]
        if not line.lstrip().startswith("#") and quote in _QUOTES and quote not in opening[1:]:
            # The quote stays open: take the lines up to the closing quote. Without one it is plain text.
            closing = (at for at in range(start + 1, len(lines)) if lines[at].rstrip().endswith(quote))
            following = next(closing, start) + 1
            line = "\n".join(lines[start:following])
        stripped = line.strip().removeprefix("export ").strip()
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = stripped.partition("=")
        if not equals or not name.strip().isidentifier():
            raise EnvFileError(
                f"{NAME}, line {start + 1} is not NAME=value.",
                next_step="Fix the line, or comment it out with #.",
            )
        value = value.strip()
        end = value.find(value[0], 1) if value.startswith(_QUOTES) else -1
        values[name.strip()] = value[1:end] if end > 0 else value.partition(" #")[0].rstrip()
    return values


def read() -> dict[str, str]:
    """Read the file in the current folder, if there is one."""
    if not os.path.isfile(NAME):  # noqa: PTH113 - paths are strings here
        return {}
    try:
        with open(NAME, encoding="utf-8") as file:  # noqa: PTH123 - the same
            return parse(file.read())
    except (OSError, ValueError) as failure:
        raise EnvFileError(f"{NAME} cannot be read: {failure}.") from failure


class Environment(dict[str, str]):
    """All variables, and the names of those that come from the file."""

    from_file: frozenset[str] = frozenset()


def merge(environment: Mapping[str, str], file_values: Mapping[str, str]) -> Environment:
    """Combine both; the environment wins."""
    merged = Environment({**file_values, **environment})
    merged.from_file = frozenset(file_values) - frozenset(environment)
    return merged


def extend(environment: Mapping[str, str], values: Mapping[str, str]) -> Environment:
    """Add what a person typed; the rest keeps its origin."""
    extended = Environment({**environment, **values})
    extended.from_file = getattr(environment, "from_file", frozenset()) - frozenset(values)
    return extended


def reread(environment: Mapping[str, str]) -> Environment:
    """Read the file again, under the same environment."""
    from_file: frozenset[str] = getattr(environment, "from_file", frozenset())
    return merge({name: value for name, value in environment.items() if name not in from_file}, read())


def narrow(environment: Mapping[str, str], declared: Iterable[Setting[Any]]) -> Environment:
    """Keep the declared settings, without addresses from the file that would receive a foreign secret."""
    from_file: frozenset[str] = getattr(environment, "from_file", frozenset())
    # Proxies are set in lower case too, as for curl.
    own = {
        name: setting
        for setting in declared
        for name in (setting.name, setting.name.lower())
        if name in environment
    }

    # A secret is foreign to the file if it comes from somewhere else: from the environment, or from a file
    # that a path setting names.
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
