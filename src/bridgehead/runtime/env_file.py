"""Env file: settings from a file named `.env`, for whoever keeps them beside a project.

The environment itself always wins. A file that came with somebody else's project must not send a key of this
user's elsewhere: an address that a key goes to counts only where the key itself is in the same file, and not
where it is in the environment or in a third file that this one names.
"""

from __future__ import annotations

from collections.abc import Mapping

from .errors import BridgeError

NAME = ".env"
_QUOTES = ("'", '"')
_ADDRESS, _KEY, _KEY_FILE = "MERCURY_API_URL", "MERCURY_API_KEY", "MERCURY_API_KEY_FILE"


class EnvFileError(BridgeError):
    """A line of the file cannot be read."""

    code = "env_file"


def parse(text: str) -> dict[str, str]:
    """Read `NAME=value` lines; empty lines, comments, `export` and quotes are understood."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.lstrip("\ufeff").splitlines(), start=1):
        stripped = line.strip().removeprefix("export ").strip()
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = stripped.partition("=")
        if not equals or not name.strip().isidentifier():
            raise EnvFileError(
                f"{NAME}, line {number} is not NAME=value.", next_step="Mend it, or put a # in front of it."
            )
        found[name.strip()] = _value(value.strip())
    return found


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
    if len(text) > 1 and text[0] in _QUOTES and text.endswith(text[0]):
        return text[1:-1]
    return text.partition(" #")[0].rstrip()


class Environment(dict[str, str]):
    """Everything that is set, and which of it the file set."""

    from_file: frozenset[str] = frozenset()


def merged(environment: Mapping[str, str], found: Mapping[str, str]) -> Environment:
    """Put the file under the environment."""
    merged = Environment({**found, **environment})
    is_foreign = environment.get(_KEY) or merged.get(_KEY_FILE)
    if is_foreign and _ADDRESS not in environment:
        merged.pop(_ADDRESS, None)
    merged.from_file = frozenset(merged) - frozenset(environment)
    return merged
