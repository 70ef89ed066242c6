"""Docstrings: the descriptions of a function and its parameters, for a model."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_SECTIONS = re.compile(r"^\s*(Args|Arguments|Parameters|Params)\s*:?\s*$", re.MULTILINE)
_OTHER_SECTION = re.compile(r"^\s*(Returns?|Raises|Yields|Examples?|Notes?)\s*:?\s*$")
_GOOGLE = re.compile(r"^\s*\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s+(.+)$")
_NUMPY = re.compile(r"^\s*(\w+)\s*:\s*\S.*$|^\s*(\w+)\s*$")
_SPHINX = re.compile(r"^\s*:param\s+(?:[^:]*\s)?(\w+)\s*:\s*(.+)$")


def read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Split a docstring into the description and the text of each parameter.

    Google's and NumPy's sections and Sphinx's `:param name:` are understood.
    """
    # As `inspect.cleandoc` does it.
    first, *rest = (function.__doc__ or "").expandtabs().split("\n")
    margin = min((_indent(line) for line in rest if line.strip()), default=0)
    text = "\n".join([first.strip(), *(line[margin:].rstrip() for line in rest)]).strip()
    parameters = {match[1]: match[2] for line in text.split("\n") if (match := _SPHINX.match(line))}
    section = _SECTIONS.search(text)
    if section is not None:
        parameters |= _read_section(text[section.end() :].split("\n"))
    lines: list[str] = []
    for line in text.split("\n"):
        if (
            _SECTIONS.match(line)
            or _OTHER_SECTION.match(line)
            or line.lstrip().startswith((":param", ":return"))
        ):
            break
        lines.append(line)
    # One paragraph a line: the line breaks of source code mean nothing to a model.
    paragraphs = "\n".join(lines).strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs), parameters


def _read_section(lines: list[str]) -> dict[str, str]:
    """Read the lines of a section of parameters, up to the next section."""
    end = next((place for place, line in enumerate(lines) if _OTHER_SECTION.match(line)), len(lines))
    is_numpy = any(set(line.strip()) == {"-"} for line in lines[:2])
    lines = [line for line in lines[:end] if line.strip() and set(line.strip()) != {"-"}]
    outermost = min(map(_indent, lines), default=0)
    texts: dict[str, str] = {}
    name = ""
    for line in lines:
        match = (_NUMPY if is_numpy else _GOOGLE).match(line) if _indent(line) == outermost else None
        if match is not None:
            name = match[1] or match[2]
            texts[name] = "" if is_numpy else match[2].strip()
        elif name:
            texts[name] = f"{texts[name]} {line.strip()}".strip()
    return {name: text for name, text in texts.items() if text}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
