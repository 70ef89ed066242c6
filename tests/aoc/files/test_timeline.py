"""Timeline: the runs of some days in the order of time, cut into pages."""

from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.aoc.files.entries import Entry, Group, moment_of
from bridgehead.aoc.files.history import PageCut, cut_page
from bridgehead.aoc.files.timeline import MAX_FILTERED, RunFilter, Timeline, newest

MOMENTS = [f"2025-12-0{day}T10:30:00.{part:03}Z" for day in (1, 2, 3) for part in (0, 1)] + ["sometime"]

entries = st.lists(
    st.builds(Entry, st.sampled_from("ab"), st.sampled_from([1, 2]), st.sampled_from(MOMENTS)), max_size=8
)


def made_of(written: list[Entry], waiting: list[Entry]) -> Timeline:
    """Make a timeline of a file and its journal, each oldest first."""
    spans = [(10 * place, 10 * place + 5) for place in range(len(written))]
    return Timeline().with_newer(written, spans).with_newer(waiting)


@given(st.lists(st.tuples(entries, entries), max_size=4), st.integers(1, 5), st.sampled_from([None, 1]))
@settings(max_examples=60, deadline=None)
def test_pages_give_every_run_once_in_the_order_of_a_whole_sort(
    days: list[tuple[list[Entry], list[Entry]]], limit: int, phase: int | None
) -> None:
    wanted = RunFilter(phase)
    orders = {day: made_of(*of_day).order(wanted) for day, of_day in enumerate(days)}
    # Newest first, and of the same moment the lower day and the later line first.
    whole = [
        (day, place, (written + waiting)[place].timestamp)
        for day, (written, waiting) in enumerate(days)
        for place in range(len(written + waiting) - 1, -1, -1)
        if phase in {None, (written + waiting)[place].phase}
    ]
    whole.sort(key=lambda run: moment_of(run[2]), reverse=True)
    seen: list[tuple[int, str]] = []
    older: int | None = None
    while True:
        cut = cut_page(len(whole), limit, older)
        for day, place in newest(orders, cut):
            start, end = made_of(*days[day]).span(place)
            written, waiting = days[day]
            seen.append((day, (written[start // 10] if end > start else waiting[start]).timestamp))
        if not cut.older:
            break
        older = cut.older

    assert seen == [(day, timestamp) for day, _, timestamp in whole]


def test_a_page_begins_in_the_middle_of_runs_with_one_moment() -> None:
    orders = {
        day: Timeline()
        .with_newer([Entry("a", 1, MOMENTS[0])] * 3, [(place, place + 1) for place in range(3)])
        .order(RunFilter())
        for day in (4, 9)
    }

    assert newest(orders, PageCut(2, 3, 1)) == [(4, 0), (9, 2), (9, 1)]


def test_groups_are_counted_by_the_recorded_name_and_new_ones_leave_the_older_timeline_as_it_was() -> None:
    first = made_of([Entry("a", 1), Entry("b", 2, measure_key="execution"), Entry("a", 1)], [])

    second = first.with_newer([Entry("a", 1), Entry("A", 1, measure_key=["unknown"])])

    in_file = {Group("a", 1, "solving"): 2, Group("b", 2, "execution"): 1}
    assert first.counts == in_file
    assert second.counts == {**in_file, Group("a", 1, "solving"): 3, Group("A", 1, "solving"): 1}
    assert (len(first.pending), len(second.pending)) == (0, 2)


def test_filtered_orders_are_kept_and_there_is_a_limit_to_them() -> None:
    timeline = made_of([Entry("a", 1), Entry("b", 2)], [])
    first = timeline.order(RunFilter(phase=1))
    assert timeline.order(RunFilter(phase=1)) is first

    for number in range(MAX_FILTERED):
        timeline.order(RunFilter(llms=frozenset([str(number)])))

    assert timeline.order(RunFilter(phase=1)) is not first
