"""Steps: how many lines of Python a piece of work executes. Owns the counting.

Lines do not depend on the machine or its load, so a test can compare two sizes of input in one run.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_lines(work: Callable[[], object]) -> int:
    """Run something in this thread and return how many lines it executed, with everything that it calls."""
    lines = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines
