"""Findings: one screen for a person, and a status for a script."""

import io

import msgspec
from rich.console import Console

from bridgehead.runtime import env_file
from bridgehead.runtime.findings import (
    Chart,
    ChartBar,
    Fact,
    Finding,
    Report,
    ReportTable,
    exit_code,
    settings_finding,
    settings_table,
    table,
)
from bridgehead.runtime.settings import TEXT, Setting, Settings, whole

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


def test_a_command_stays_on_one_line_at_any_width_of_the_text_before_it() -> None:
    for before in range(1, 80):
        advice = f"{'x' * before} (`bridgehead mercury simulate --port 8080`)."
        assert "(`bridgehead mercury simulate --port 8080`)." in shown(Finding("key", "note", "No.", advice))


def test_a_word_that_is_wider_than_the_terminal_is_folded_and_nothing_of_it_lost() -> None:
    told = shown(Finding("state", "right", f"kept in /{'y' * 200} now"))

    assert max(map(len, told.splitlines())) <= 80
    assert told.count("y") == 200
    assert "now" in told


def test_a_long_path_is_broken_between_its_folders() -> None:
    told = shown(Finding("state", "right", f"kept in /home/{'y' * 40}/{'z' * 40}/state"))

    assert [line.strip().rpartition(" ")[2] for line in told.splitlines()] == [
        "in",
        f"/home/{'y' * 40}/",
        f"{'z' * 40}/state",
    ]


def test_only_what_is_wrong_makes_the_status_another() -> None:
    assert exit_code([]) == exit_code([RIGHT, NOTE]) == 0
    assert exit_code([RIGHT, WRONG, NOTE]) == 1


class Some(Settings):
    year = Setting("SOME_YEAR", whole(2015, 2099), 2025, "The [year].")
    place = Setting("SOME_PLACE", TEXT, None, "Where.", shown="here")
    key = Setting("SOME_KEY", TEXT, None, "What opens it.", secret=True)


ENVIRONMENT = env_file.merge({"SOME_KEY": "sk-secret"}, {"SOME_YEAR": "2024"})


def test_a_finding_names_what_is_set_and_where_and_counts_the_rest() -> None:
    found = settings_finding(Some(ENVIRONMENT), ENVIRONMENT)

    assert (found.what, found.verdict) == ("settings", "right")
    assert found.text == (
        "SOME_YEAR=2024 (from .env), SOME_KEY=(set) (from the environment), 1 at its default"
    )


def test_a_table_has_all_of_them() -> None:
    out = io.StringIO()
    Console(file=out, width=100).print(settings_table(Some(ENVIRONMENT), ENVIRONMENT))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]

    for setting, about in (
        ("SOME_YEAR = 2024 (.env)", "    The [year]."),
        ("SOME_PLACE = here (default)", "    Where."),
        ("SOME_KEY = (set) (the environment)", "    What opens it."),
    ):
        assert lines[lines.index(setting) + 1] == about


def test_a_narrow_terminal_cuts_no_word_of_the_settings() -> None:
    out = io.StringIO()
    Console(file=out, width=40).print(settings_table(Some(ENVIRONMENT), ENVIRONMENT))

    assert {"SOME_YEAR", "SOME_PLACE", "SOME_KEY", "environment)", "opens"} <= {*out.getvalue().split()}


def test_a_list_of_addresses_is_broken_between_them() -> None:
    addresses = ["https://example.com", "http://localhost:*", "http://127.0.0.1:*", "file://"]
    environment = {"SOME_PLACE": ",".join(addresses)}
    out = io.StringIO()
    Console(file=out, width=40).print(settings_table(Some(environment), environment))

    lines = [line.strip() for line in out.getvalue().splitlines()]
    assert lines[4:7] == [
        "https://example.com,http://localhost:*,",
        "http://127.0.0.1:*,file:// (the",
        "environment)",
    ]


def test_a_report_survives_the_way_to_another_process() -> None:
    report = Report(
        facts=(Fact("Files", "61"),),
        charts=(Chart("Ranking", (ChartBar("<b>", 1.5, "1.50×"),), "columns"),),
        tables=(ReportTable("Files", ("Name", "Size"), (("a.js", "5 B"),), frozenset({"Size"})),),
    )

    assert msgspec.json.decode(msgspec.json.encode(report), type=Report) == report


def test_a_report_may_have_nothing_to_tell() -> None:
    assert (Report().facts, Report().charts, Report().tables) == ((), (), ())
