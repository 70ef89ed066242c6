"""Breaker: closed, open, and one probe at a time."""

from bridgehead.mercury.calling.retries import Breaker


def opened() -> Breaker:
    breaker = Breaker(3, 10.0)
    for _ in range(3):
        breaker.record_failure(100.0)
    return breaker


def test_it_opens_after_failures_in_a_row() -> None:
    breaker = Breaker(3, 10.0)
    breaker.record_failure(0.0)
    breaker.record_failure(0.0)
    breaker.record_success()
    breaker.record_failure(0.0)
    breaker.record_failure(0.0)
    assert breaker.delay(0.0) == 0.0

    breaker.record_failure(0.0)

    assert breaker.is_open
    assert breaker.delay(4.0) == 6.0


def test_after_the_wait_one_request_goes_out_and_the_others_wait_for_it() -> None:
    breaker = opened()

    assert [breaker.delay(110.0), breaker.delay(110.0)] == [0.0, 10.0]

    breaker.record_success()
    assert breaker.delay(110.0) == 0.0


def test_a_probe_that_fails_opens_it_again() -> None:
    breaker = opened()
    breaker.delay(110.0)
    breaker.record_failure(111.0)

    assert breaker.delay(111.0) == 10.0


def test_a_probe_that_tells_nothing_makes_room_for_another() -> None:
    breaker = opened()
    breaker.delay(110.0)
    breaker.record_nothing()

    assert breaker.delay(110.0) == 0.0


def test_it_tells_when_it_opens_and_when_it_closes_and_not_in_between() -> None:
    told: list[bool] = []
    breaker = Breaker(2, 10.0, told.append)
    for _ in range(4):
        breaker.record_failure(0.0)
    breaker.record_success()
    breaker.record_success()

    assert told == [True, False]


def test_the_service_is_left_alone_only_until_the_next_request_may_find_out() -> None:
    assert opened().is_waiting(109.0)
    assert not opened().is_waiting(110.0)
