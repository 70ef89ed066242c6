"""Page: convert a day's HTML page to the Markdown of its phases and the answers it shows. Pure."""

from __future__ import annotations

import re

from msgspec import Struct

from bridgehead.runtime.errors import Unavailable

_BLANK_LINES = re.compile(r"\n{3,}")


class DayPage(Struct, frozen=True):
    """The content of a day's page for this user."""

    phases: list[str]
    """Markdown texts; the site shows the second one once the first is solved."""
    answers: list[str]
    """The user's accepted answers, if any."""


def parse_page(html: str) -> DayPage:
    """Parse a page; raises `Unavailable` if it has no puzzle."""
    try:
        from bs4 import BeautifulSoup
        from markdownify import MarkdownConverter
    except ImportError as missing:
        raise Unavailable(
            "Fetching needs markdownify, which is not installed.",
            next_step='Install it with: pip install "bridgehead[fetch]"',
        ) from missing
    soup = BeautifulSoup(html, "html.parser")
    # No escapes: puzzles draw with asterisks and underscores, and a solver reads the text as it is.
    converter = MarkdownConverter(heading_style="ATX", bullets="-", escape_misc=False, escape_asterisks=False)
    articles = soup.select("article.day-desc")
    if not articles:
        raise Unavailable(
            "The page has no puzzle on it.", next_step="The site may have changed; put the text in by hand."
        )
    phases = []
    for article in articles:
        lines = (line.rstrip() for line in converter.convert_soup(article).strip().split("\n"))
        phases.append(_BLANK_LINES.sub("\n\n", "\n".join(lines)) + "\n")
    # Beside each solved phase the page repeats the user's accepted answer in a paragraph of its own.
    answers = [
        str(code.get_text()).strip()
        for code in soup.select("main > p > code")
        if code.parent is not None and "Your puzzle answer was" in code.parent.get_text()
    ]
    return DayPage(phases, answers)
