"""The bridge's page in the documents says what is so."""

from bridgehead.aoc.settings import AocSettings
from tests.support.stdio_peer import ROOT

PAGE = (ROOT / "docs" / "aoc.md").read_text(encoding="utf-8")


def test_every_setting_is_in_the_table_with_its_default() -> None:
    rows = [f"| `{s.name}` | {s.shown_default} | {s.about} |" for s in AocSettings.declared]

    assert [row for row in rows if row not in PAGE] == []
