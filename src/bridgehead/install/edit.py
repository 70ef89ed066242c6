"""Edit: puts entries into a configuration text in JSON or TOML, and verifies each change.

The result is parsed again: it must hold our entries as requested and everything else unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any, Literal

from . import json_edit, toml_edit
from .errors import InstallError, Malformed

Format = Literal["json", "toml"]
_EDITORS: dict[Format, ModuleType] = {"json": json_edit, "toml": toml_edit}
_BOM = "\ufeff"


def servers(text: str | None, form: Format, section: str) -> dict[str, Any]:
    """Return the servers in a text; raises Malformed."""
    return _read(text, form, section)[1]


def put(text: str | None, form: Format, section: str, entries: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the text with these servers in it; None stands for a missing file."""
    bom, original = _split(text)
    edited = original
    others, old = _read(text, form, section)
    for name, entry in entries.items():
        try:
            edited = _EDITORS[form].put(edited, section, name, entry)
        except Malformed:
            if edited is original:
                raise
            raise _no_room(section) from None  # an entry put before this one has broken the text
    result = None if edited is None else bom + edited
    _verify((others, old | dict(entries)), result, form, section)
    return result


def take(text: str | None, form: Format, section: str, names: Iterable[str]) -> str | None:
    """Return the text without these servers; None if the file held nothing else."""
    removed = tuple(names)
    bom, edited = _split(text)
    for name in removed:
        edited = edited if edited is None else _EDITORS[form].take(edited, section, name)
    result = None if edited is None else bom + edited
    others, old = _read(text, form, section)
    remaining = {name: entry for name, entry in old.items() if name not in removed}
    _verify((others, remaining), result, form, section)
    return result


def _read(text: str | None, form: Format, section: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return everything but the servers, and the servers."""
    data: dict[str, Any] = dict(_EDITORS[form].read((text or "").removeprefix(_BOM), section))
    in_section: dict[str, Any] = data.pop(section, {})
    return data, in_section


def _split(text: str | None) -> tuple[str, str | None]:
    """Split off a byte order mark, which some Windows editors write and no parser accepts."""
    if text is None or not text.startswith(_BOM):
        return "", text
    return _BOM, text.removeprefix(_BOM)


def _verify(expected: tuple[Any, Any], result: str | None, form: Format, section: str) -> None:
    try:
        if json_edit.same(expected, _read(result, form, section)):
            return
    except Malformed:
        pass  # such as a TOML table added next to an inline one, which cannot be extended
    raise _no_room(section)


def _no_room(section: str) -> InstallError:
    return InstallError(
        f"The way in which {section} is written leaves no room for a safe change. Nothing was written.",
        next_step="Write each server as an object or a table of its own, and run this again.",
    )
