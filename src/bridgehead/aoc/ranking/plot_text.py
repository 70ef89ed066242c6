"""Plot text: which fonts a picture needs for the names in it, and how wide a text is, in inches.

matplotlib's own font has Latin, Greek and Cyrillic letters. Names in other scripts, or with emoji, are drawn
with fonts of the system where it has some; what no font has is drawn as an empty box, with a note.
"""

from __future__ import annotations

from functools import lru_cache

_BASE = "DejaVu Sans"
_PREFERRED = ("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Emoji", "Noto Sans")
"""Tried first; any other font of the system that has the character does too."""
_BOX = "\u25af"
_INVISIBLE = frozenset("\ufe0f\ufe0e\u200d")
"""Joiners and variants, which matplotlib cannot apply and would draw as boxes."""
_POINTS_PER_INCH = 72.0
_UNIT = 100.0
_NOTE = "Some characters have no font here and are drawn as boxes; a Noto font would have them."


class Fonts:
    """The fonts of one picture."""

    def __init__(self, families: list[str], missing: frozenset[str]) -> None:
        self.families = families
        self._missing = missing
        self.notes = [_NOTE] if missing else []

    def clean(self, text: str) -> str:
        """Return a text as it can be drawn."""
        kept = (character for character in text if character not in _INVISIBLE)
        return "".join(_BOX if character in self._missing else character for character in kept)

    def width(self, text: str, size: float) -> float:
        """Return how wide a text is, its widest line, in inches."""
        families = tuple(self.families)
        lines = text.split("\n")
        return max(sum(_advance(one, families) for one in line) for line in lines) * size / _POINTS_PER_INCH

    def fit(self, text: str, most: float, size: float) -> str:
        """Write a text on one line, or on two, and cut off what does not fit on those."""
        whole = self.clean(text)
        if self.width(whole, size) <= most:
            return whole
        first = self._head(whole, most, size)
        rest = whole[len(first) :]
        if self.width(rest, size) > most:
            rest = self._head(rest, most - self.width("…", size), size) + "…"
        return f"{first}\n{rest.strip()}"

    def _head(self, text: str, most: float, size: float) -> str:
        """Return the longest beginning that fits, ending where a word does if that is not far off."""
        end = len(text)
        while end > 1 and self.width(text[:end], size) > most:
            end -= 1
        at = max(text.rfind(mark, 0, end) for mark in " -/_:")
        return text[: at + 1] if at > end // 2 else text[:end]

    def wrap(self, text: str, most: float, size: float) -> list[str]:
        """Break a text into lines of at most this width."""
        lines = [""]
        for word in text.split():
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and self.width(longer, size) > most:
                lines.append(word)
            else:
                lines[-1] = longer
        return lines


def find_fonts(text: str) -> Fonts:
    """Choose fonts that have every character of a text, as far as the system goes."""
    wanted = {c for c in text if not c.isascii() and c not in _INVISIBLE and not c.isspace()}
    files = _font_files()
    wanted -= _characters(files[_BASE])
    families = [_BASE]
    others = [name for name in files if name not in {_BASE, *_PREFERRED}]
    for name in [*(name for name in _PREFERRED if name in files), *sorted(others)]:
        if not wanted:
            break
        found = wanted & _characters(files[name])
        if found:
            families.append(name)
            wanted -= found
    return Fonts(families, frozenset(wanted))


@lru_cache(maxsize=1)
def _font_files() -> dict[str, str]:
    """Return the file of each family, the plainest face of it."""
    from matplotlib.font_manager import fontManager

    plain = sorted(
        fontManager.ttflist, key=lambda font: (font.style != "normal", font.weight not in {400, "normal"})
    )
    files: dict[str, str] = {}
    for font in plain:
        if "Last Resort" not in font.name:  # which has a box for every character
            files.setdefault(font.name, font.fname)
    return files


@lru_cache(maxsize=1024)
def _characters(file: str) -> frozenset[str]:
    """Return the characters that a font can draw; none of a font that cannot be used."""
    from matplotlib.font_manager import get_font

    try:
        font = get_font(file)
        return frozenset(map(chr, font.get_charmap())) if font.scalable else frozenset()
    except (RuntimeError, ValueError, OSError):
        return frozenset()  # a font of coloured pictures


@lru_cache(maxsize=4096)
def _advance(character: str, families: tuple[str, ...]) -> float:
    """Return how far a character moves the pen, in units of the font's size."""
    from matplotlib.font_manager import get_font
    from matplotlib.ft2font import LoadFlags

    files = _font_files()
    for family in families:
        if character in _characters(files[family]):
            font = get_font(files[family])
            font.set_size(_UNIT, _POINTS_PER_INCH)
            glyph = font.load_char(ord(character), flags=LoadFlags.NO_HINTING)
            return float(glyph.linearHoriAdvance) / 65536 / _UNIT
    return 1.0
