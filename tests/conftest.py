"""For all tests: what they print can be sent from the process that runs them to the one that reports."""

from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write out what UTF-8 cannot carry, such as half of a surrogate pair in a logged message."""
    report = yield
    report.sections = [(title, _carried(text)) for title, text in report.sections]
    return report


def _carried(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
