"""Page.

A day's page of the site, from HTML to the Markdown of its phases and the answers that it shows. Pure.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from bridgehead.runtime.errors import BridgeError, Unavailable

_BLANK_LINES = re.compile(r"\n{3,}")


class DayPage(Struct, frozen=True):
    """What a day's page has for this user."""

    phases: list[str]
    """Markdown; the second one is there once the first is solved."""
    answers: list[str]
    """The user's own right answers, as far as they were given."""


def parse_page(html: str) -> DayPage:
    """Take a page apart; raises `Unavailable` where it is not a day's."""
    try:
        from bs4 import BeautifulSoup
        from markdownify import MarkdownConverter
    except ImportError as missing:
        raise _not_installed() from missing
    soup = BeautifulSoup(html, "html.parser")
    converter = MarkdownConverter(heading_style="ATX", bullets="-", escape_misc=False, escape_asterisks=False)
    articles = soup.select("article.day-desc")
    if not articles:
        raise Unavailable(
            "The page has no puzzle on it.", next_step="The site may have changed; put the text in by hand."
        )
    phases = [_clean(converter.convert_soup(article)) for article in articles]
    return DayPage(phases, [_answer(code) for code in soup.select("main > p > code") if _is_answer(code)])


def _clean(markdown: str) -> str:
    lines = (line.rstrip() for line in markdown.strip().splitlines())
    return _BLANK_LINES.sub("\n\n", "\n".join(lines)) + "\n"


def _is_answer(code: Any) -> bool:
    return "Your puzzle answer was" in code.parent.get_text()


def _answer(code: Any) -> str:
    return str(code.get_text()).strip()


def _not_installed() -> BridgeError:
    return Unavailable(
        "Fetching needs markdownify, which is not installed.",
        next_step='Install it with: pip install "bridgehead[fetch]"',
    )
