"""Findings: one screen for a person, and a status for a script."""

import io

from rich.console import Console

from bridgehead.runtime.findings import Finding, exit_code, table

RIGHT = Finding("state", "right", "kept in [a] folder")
NOTE = Finding("game", "note", "none yet", "Start one.")
WRONG = Finding("key", "wrong", "missing", "Set [KEY].")


def shown(*findings: Finding) -> str:
    out = io.StringIO()
    Console(file=out, width=80, highlight=False).print(table(findings))
    return out.getvalue()


def test_each_finding_has_its_mark_and_its_advice_below() -> None:
    lines = [line.rstrip() for line in shown(RIGHT, NOTE, WRONG).splitlines()]

    assert lines == [
        "✓ state kept in [a] folder",
        "• game  none yet",
        "        → Start one.",
        "✗ key   missing",
        "        → Set [KEY].",
    ]


def test_only_what_is_wrong_makes_the_status_another() -> None:
    assert exit_code([]) == exit_code([RIGHT, NOTE]) == 0
    assert exit_code([RIGHT, WRONG, NOTE]) == 1
