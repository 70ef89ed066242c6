"""Script: reads a source as far as its RAM cost needs: the names in it, its imports, its brackets.

Not a parser of JavaScript. It knows comments, strings, templates and regular expressions well enough to leave
them out, and holds a script to be broken where one of them or a bracket stays open.
"""

from __future__ import annotations

import re

from msgspec import Struct

_TOKEN = re.compile(
    r"""
    (?P<skipped> \s+ | //[^\n]* | /\*[\s\S]*?\*/ )
  | (?P<string> "(?:\\[\s\S]|[^"\\\n])*" | '(?:\\[\s\S]|[^'\\\n])*' )
  | (?P<name> [A-Za-z_$][\w$]* )
  | (?P<open> [({\[`] )
  | (?P<close> [)}\]] )
  | (?P<broken> /\* | ["'] )
  | (?P<other> \d[\w.]* | [\s\S] )
    """,
    re.VERBOSE,
)
_TEMPLATE_TEXT = re.compile(r"(?:\\[\s\S]|\$(?!\{)|[^`\\$])*")
_EXPRESSION = re.compile(r"/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/[a-z]*")
_BEFORE_EXPRESSION = frozenset("(,=:[!&|?{};+-*%<>~^") | {"", "return", "typeof", "case"}
_PAIRS = {"(": ")", "[": "]", "{": "}", "`": "`"}
_IMPORT = re.compile(
    r"""^\s*(?:import\b|export\s*(?:\*|\{[^}"']*\})[^"';]*?\bfrom\b)[^"'();]*["'](?P<path>[^"'\n]+)["']""",
    re.MULTILINE,
)


class BrokenScript(Exception):
    """The source cannot be a script."""


class Script(Struct, frozen=True):
    """What counts of a source."""

    names: frozenset[str]
    imports: tuple[str, ...]


def read(source: str, *, has_markup: bool) -> Script:
    """Read a source; raises BrokenScript. Markup (jsx, tsx) may hold a lone quote in its text."""
    reading = _Reading(source, has_markup=has_markup)
    while reading.at < len(source):
        reading.step()
    if reading.expected:
        raise BrokenScript(f"{reading.expected[-1]} is missing at the end")
    imports = tuple(found["path"] for found in _IMPORT.finditer(source))
    return Script(frozenset(reading.names), imports)


class _Reading:
    """How far a source is read, what is still open, and what was before: it decides what a slash means."""

    def __init__(self, source: str, *, has_markup: bool) -> None:
        self.at = 0
        self.names: set[str] = set()
        self.expected: list[str] = []
        self._source = source
        self._before = ""
        self._has_markup = has_markup

    def step(self) -> None:
        """Go on by one token."""
        if self.expected[-1:] == ["`"]:
            self._template()
        elif self._before in _BEFORE_EXPRESSION and (found := _EXPRESSION.match(self._source, self.at)):
            self._before, self.at = "/", found.end()
        elif token := _TOKEN.match(self._source, self.at):
            self.at = token.end()
            if token.lastgroup != "skipped":
                self._before = token[0]
                self._take(token)

    def _take(self, token: re.Match[str]) -> None:
        match token.lastgroup:
            case "name":
                self.names.add(token[0])
            case "open":
                self.expected.append(_PAIRS[token[0]])
            case "close":
                if not self.expected or self.expected.pop() != token[0]:
                    raise BrokenScript(f"{token[0]} closes nothing")
            case "broken" if not self._has_markup:
                raise BrokenScript(f"{token[0]} stays open")

    def _template(self) -> None:
        """Go over the text of a template up to its end or to the code in it."""
        text = _TEMPLATE_TEXT.match(self._source, self.at)
        self.at = text.end() if text else self.at
        if self._source.startswith("${", self.at):
            self.expected.append("}")
            self.at += 2
        elif self._source.startswith("`", self.at):
            self.expected.pop()
            self.at += 1
        else:
            raise BrokenScript("a template stays open")
