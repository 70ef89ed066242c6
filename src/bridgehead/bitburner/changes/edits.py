"""Edits: replace exact texts in a content, and explain a text that was not found. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque

from msgspec import Struct

from bridgehead.runtime.errors import InvalidArgument
from bridgehead.runtime.lines import split_lines

from ..errors import NOTHING_CHANGED

_MAX_SEARCHED = 300_000
"""Characters of the file that are searched for a similar text: about 50 ms."""
_LINE_COST = 10
"""Fixed cost of a line, in characters, on top of its own."""
_MAX_LINE = 500
"""Characters of a line that are compared."""
_MAX_SOUGHT = 30
"""Lines of old_text that are compared."""
_MAX_SHOWN = 1500
_MAX_LINE_NUMBERS = 10
_MIN_LIKENESS = 0.5
_QUOTES = str.maketrans({"'": '"', "`": '"', "\u2018": '"', "\u2019": '"', "\u201c": '"', "\u201d": '"'})


class Replacement(Struct, frozen=True):
    """A text, its replacement, and how often it must occur."""

    old_text: str
    new_text: str
    count: int = 1


def apply_replacements(filename: str, content: str, replacements: list[Replacement]) -> str:
    """Make all replacements in order, or raise and make none."""
    for number, edit in enumerate(replacements, start=1):
        # Line ends do not have to match, and the file keeps its own: models always write a line feed.
        # Exceptions: the edit changes only line ends, or the file has none.
        replacement, plain = edit, content
        if "\n" in content and _unify(edit.old_text) != _unify(edit.new_text):
            replacement = Replacement(_unify(edit.old_text), _unify(edit.new_text), edit.count)
            plain = _unify(content)
        count = plain.count(replacement.old_text)
        if count != replacement.count:
            label = "old_text" if len(replacements) == 1 else f"old_text of edit {number}"
            raise _make_mismatch(filename, plain, replacement, count, label)
        # In order: a later edit sees, and may replace, the text of an earlier one.
        if plain is content:
            content = content.replace(replacement.old_text, replacement.new_text)
        else:
            content = _replace_in_lines(content, plain, replacement)
    return content


def _unify(text: str) -> str:
    """Return a text whose lines all end with a line feed alone; the same object if they do."""
    return text.replace("\r\n", "\n") if "\r\n" in text else text


def _replace_in_lines(content: str, plain: str, replacement: Replacement) -> str:
    """Replace in a content with carriage returns; new lines end as most of the file's do, others stay."""
    ends = content.count("\r\n")
    end = "\r\n" if 2 * ends > content.count("\n") else "\n"
    new_text = replacement.new_text.replace("\n", end)
    # Offsets at which the plain text lacks a `\r`; each one before a position shifts it by one.
    returns: list[int] = []
    at = content.find("\r\n")
    while at >= 0:
        returns.append(at - len(returns))
        at = content.find("\r\n", at + 2)
    parts: list[str] = []
    done = 0
    start = plain.find(replacement.old_text)
    while start >= 0:
        stop = start + len(replacement.old_text)
        parts += [content[done : start + bisect_left(returns, start)], new_text]
        done = stop + bisect_left(returns, stop)
        start = plain.find(replacement.old_text, stop)
    return "".join((*parts, content[done:]))


def _make_mismatch(
    filename: str, content: str, replacement: Replacement, count: int, label: str
) -> InvalidArgument:
    message = f"{label} occurs {count} times in {filename}, not {replacement.count}. {NOTHING_CHANGED}"
    if count:
        numbers: list[int] = []
        at = content.find(replacement.old_text)
        while at >= 0 and len(numbers) < _MAX_LINE_NUMBERS:
            numbers.append(content.count("\n", 0, at) + 1)
            at = content.find(replacement.old_text, at + max(len(replacement.old_text), 1))
        return InvalidArgument(
            f"{message} It is on lines {', '.join(map(str, numbers))}.",
            next_step="Make old_text longer so that it is exact, or set count.",
        )
    advice = "Copy old_text from the file as it is, whitespace included"
    lines, wanted = split_lines(content), (split_lines(replacement.old_text) or [""])[:_MAX_SOUGHT]
    best, likeness = _find_nearest(lines, wanted)
    if best is None or likeness < _MIN_LIKENESS:
        return InvalidArgument(
            f"{message} No part of the file is like it.", next_step=f"{advice}; read_file shows it."
        )
    nearest = lines[best : best + len(wanted)]
    last = best + len(nearest)
    place = f"line {best + 1}" if last == best + 1 else f"lines {best + 1} to {last}"
    difference = _explain_difference(nearest, wanted, is_one=len(nearest) == 1)
    shown = "\n".join(nearest)[:_MAX_SHOWN]
    # Put the file's text into the advice, not the message: messages are logged, and contents never are.
    return InvalidArgument(
        f"{message} Nearest: {place}, which {difference}.",
        next_step=f"{advice}:\n{shown}" if shown else f"{advice}; read_file shows it.",
    )


def _find_nearest(lines: list[str], wanted: list[str]) -> tuple[int | None, float]:
    """Return the index of the lines most similar to the wanted ones, and the similarity from 0 to 1.

    Similarity is the share of trigrams in common (Dice). A window of lines slides over the file and each line
    is counted when it enters and when it leaves, so the work is linear, whatever the texts are.
    """
    sought = dict(Counter(trigram for line in wanted for trigram in _trigrams(line)))
    sought_size = sum(sought.values())
    counts = dict.fromkeys(sought, 0)
    window: deque[tuple[int, list[str]]] = deque()
    """Per line: its size, and which of the sought trigrams it has."""
    size = common = searched = 0
    best, likeness = None, 0.0
    for number, line in enumerate(lines):
        trigrams = _trigrams(line)
        entering = [trigram for trigram in trigrams if trigram in sought]
        window.append((len(trigrams), entering))
        size += len(trigrams)
        for trigram in entering:
            counts[trigram] += 1
            common += counts[trigram] <= sought[trigram]
        if len(window) > len(wanted):
            leaving_size, leaving = window.popleft()
            size -= leaving_size
            for trigram in leaving:
                common -= counts[trigram] <= sought[trigram]
                counts[trigram] -= 1
        if common and (ratio := 2 * common / (size + sought_size)) > likeness:
            best, likeness = number - len(window) + 1, ratio
        searched += len(trigrams) + _LINE_COST
        if searched > _MAX_SEARCHED:
            break
    return best, likeness


def _trigrams(line: str) -> list[str]:
    # Pad with spaces, so that even a line of one character has a trigram.
    text = f" {' '.join(line[:_MAX_LINE].split())} ".translate(_QUOTES).lower()
    return [text[at : at + 3] for at in range(len(text) - 2)]


def _explain_difference(nearest: list[str], wanted: list[str], *, is_one: bool) -> str:
    """Describe the difference if it is of a kind that is easily overlooked."""
    there, sought = "\n".join(nearest), "\n".join(wanted)
    differs, holds = ("differs", "holds") if is_one else ("differ", "hold")
    bare_there, bare_sought = _strip_spaces(there), _strip_spaces(sought)
    kinds = (
        (sought in there, f"{holds} its first lines"),
        (bare_there == bare_sought, f"{differs} only in whitespace"),
        (there.translate(_QUOTES) == sought.translate(_QUOTES), f"{differs} only in quotes"),
        (
            bare_there.translate(_QUOTES) == bare_sought.translate(_QUOTES),
            f"{differs} only in whitespace and quotes",
        ),
        (there.lower() == sought.lower(), f"{differs} only in upper and lower case"),
        (bare_sought in bare_there, f"{holds} it with other whitespace"),
    )
    return next((words for holds_true, words in kinds if holds_true), differs)


def _strip_spaces(text: str) -> str:
    return "".join(text.split())
