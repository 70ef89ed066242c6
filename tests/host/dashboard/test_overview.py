"""Overview: what is so, what was called, what failed; hostile names are text."""

import pytest

from bridgehead.host.auth.grants import ANYONE, Grant
from bridgehead.host.dashboard.history import DAY, HOUR, QUARTER, Counts, Failure, Notice
from bridgehead.host.dashboard.overview import write_bridge, write_overview
from bridgehead.host.dashboard.snapshot import BridgeState, ProcessState, SessionState, Snapshot
from bridgehead.runtime.events import TYPES
from bridgehead.runtime.findings import Chart, ChartBar, Fact, Report, ReportTable
from tests.host.dashboard.test_templates import HOSTILE, read

EVIL = HOSTILE[1]
REPORT = Report(
    facts=(Fact("Files", "61"), Fact(EVIL, EVIL)),
    charts=(
        Chart(EVIL, (ChartBar(EVIL, 1.0, EVIL),)),
        Chart("Days", (ChartBar("1st", 1.0, "one"),), "columns"),
    ),
    tables=(
        ReportTable(EVIL, (EVIL, "n"), ((EVIL, "1"),), frozenset({"n"})),
        ReportTable("None", ("a",), ()),
    ),
)


def snapshot(*, is_far_side_up: bool = True, calls: int = 1) -> Snapshot:
    counts = Counts(calls, 0, [calls] + [0] * 15)
    return Snapshot(
        taken=1_000_000.0,
        version="1",
        process=ProcessState(999_000.0, 1.0, 2.0**20),
        bridges=[
            BridgeState(
                "aoc",
                "Advent",
                serves=True,
                is_far_side_up=is_far_side_up,
                detail="0",
                in_flight=1,
                tools={"x": counts},
            )
        ],
        slots={QUARTER.name: {199_999: {"aoc": counts}}, DAY.name: {3_332: {"aoc": counts}}},
        failures=[Failure(0.0, "aoc", "x", "ann", "Problem 0.")],
        notices=[],
        sessions=[SessionState("h0", "ann", "client", "2025-11-25", "", 3.0, is_busy=False)],
        open={"sessions": 1},
        clients={"ann": {"made": 5, "sessions": 1}},
        limits={"sessions": 10},
        tasks={"working": 1},
        rejections={"path": 2},
        token_uses={"ab": 100.0, "c0": 1.0},
    )


def test_the_first_page_tells_of_calls_bridges_and_failures() -> None:
    text = read(write_overview(snapshot(calls=12), {"aoc": REPORT}, ANYONE).body).text

    for words in (
        "Calls a second0.2",
        "12 since the start",
        "Failed0 %",
        "Sessions1",
        "Advent",
        "ready",
        "Files61",
        "Problem 0.",
    ):
        assert words in text


def test_the_charts_show_the_range_that_was_chosen_and_offer_the_others() -> None:
    made = snapshot()
    made.process.started = made.taken - 2 * 86_400
    page = read(write_overview(made, {}, ANYONE, DAY).body)

    assert "24 h ago" in page.text
    assert "Failed calls in 5 min" in page.text
    assert "Recorded since" not in page.text
    links = {a["href"]: a.get("aria-current") for name, a in page.elements if "range" in str(a.get("href"))}
    assert links == {"/?range=hour": None, "/?range=day": "true"}
    page = read(write_bridge(made, made.bridges[0], None, HOUR).body)
    links = {a["href"]: a.get("aria-current") for name, a in page.elements if "range" in str(a.get("href"))}
    assert links == {
        "/dashboard/bridge?name=aoc&range=hour": "true",
        "/dashboard/bridge?name=aoc&range=day": None,
    }


def test_charts_say_since_when_they_know_and_draw_no_zero_before() -> None:
    made = snapshot()
    made.process.started = made.taken - 1000  # three slots of five minutes, and a part of one
    page = read(write_overview(made, {}, ANYONE, DAY).body)

    assert "Recorded since the start of the server, 1970-01-12 13:30 UTC; one point every 5 min." in page.text
    assert "2 h ago" in page.text
    (line, *_) = [a["d"] for name, a in page.elements if name == "path" and "line" in str(a["class"])]
    assert str(line).startswith("M21 ")  # of 24 slots, the last three


def test_an_empty_host_says_what_will_be_there() -> None:
    bare = snapshot(calls=0)
    bare.failures, bare.slots, bare.bridges[0].tools = [], {"quarter": {}}, {}
    text = read(write_overview(bare, {}, ANYONE).body).text

    assert "No call has failed since the start." in text
    assert "No connection was lost" in text
    assert "No tool has been called yet." in read(write_bridge(bare, bare.bridges[0], None).body).text


def test_hostile_names_are_text_on_every_part_of_a_page() -> None:
    bad = snapshot()
    bad.bridges[0].title = bad.bridges[0].detail = EVIL
    bad.bridges[0].tools = {EVIL: bad.bridges[0].tools["x"]}
    bad.failures = [Failure(1.0, EVIL, EVIL, EVIL, EVIL, EVIL, EVIL)]
    bad.notices = [Notice(1.0, EVIL, EVIL, EVIL)]
    for page in (
        write_overview(bad, {"aoc": REPORT}, ANYONE),
        write_bridge(bad, bad.bridges[0], REPORT),
    ):
        made = read(page.body)
        assert "img" not in {name for name, _ in made.elements}
        assert EVIL in made.text


def test_what_a_token_does_not_open_is_not_told_to_it() -> None:
    text = read(write_overview(snapshot(), {}, Grant("ann", dashboard=True)).body).text

    assert "This token does not open the bridge." in text
    assert "Problem 0." not in text


def test_the_same_failure_is_listed_once_with_how_often() -> None:
    made = snapshot()
    made.failures = [Failure(10.0 - number, "aoc", "x", "", "Away.") for number in range(3)]
    made.failures += [Failure(1.0, "aoc", f"y{number}", "", "Away.") for number in range(9)]
    text = read(write_overview(made, {}, ANYONE).body).text

    assert text.count("Away.") == 5
    assert "× 3" in text


def tell(notice: Notice) -> str:
    made = snapshot()
    made.notices = [notice]
    return read(write_overview(made, {}, ANYONE).body).text


@pytest.mark.parametrize("kind", [kind for kind in TYPES if not kind.startswith("call.")])
def test_a_notice_is_named_in_words_and_not_by_the_type_of_its_event(kind: str) -> None:
    text = tell(Notice(1.0, kind, "aoc", "Says."))

    assert kind not in text
    assert "Says." in text


def test_a_notice_of_a_type_that_only_its_bridge_knows_is_named_by_it() -> None:
    assert "weather.storm" in tell(Notice(1.0, "weather.storm", "weather", "Wind."))
