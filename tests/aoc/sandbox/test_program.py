"""Program: times, and what happens to a program that breaks a limit."""

import os
import sys
import time
from pathlib import Path

import pytest

from bridgehead.aoc.sandbox.program import MEGABYTE, Limits, descendants
from tests.aoc.sandbox.solver_run import IS_ISOLATED, run
from tests.support.waiting import PATIENCE

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX processes")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="watched through /proc")
ISOLATED = pytest.mark.skipif(not IS_ISOLATED, reason="bubblewrap is not available on this system")
BOTH = pytest.mark.parametrize("is_isolated", sorted({False, IS_ISOLATED}))
"""With and without isolation, where the system has it."""
WORK = (
    "import time\nuntil = time.process_time() + 0.2\nwhile time.process_time() < until: pass\nprint(input())"
)


@POSIX
@BOTH
def test_wall_and_cpu_time_are_those_of_the_program(tmp_path: Path, *, is_isolated: bool) -> None:
    done = run(WORK, tmp_path, is_isolated=is_isolated)

    assert (done.out, done.ended.problem, done.ended.status) == ("42\n", "", 0), done.err
    assert done.ended.wall_ms >= 200
    assert done.ended.cpu_ms is not None
    assert done.ended.cpu_ms >= 190  # the shell counts in hundredths of a second


@POSIX
def test_waiting_is_wall_time_and_not_cpu_time(tmp_path: Path) -> None:
    done = run("import time; time.sleep(0.5)", tmp_path)

    assert done.ended.wall_ms >= 500
    assert (done.ended.cpu_ms or 0) < done.ended.wall_ms


@BOTH
def test_the_status_and_the_last_words_of_a_program_are_kept(tmp_path: Path, *, is_isolated: bool) -> None:
    done = run("import sys; sys.exit('it broke')", tmp_path, is_isolated=is_isolated)

    assert (done.ended.status, done.ended.problem) == (1, "")
    assert done.err.splitlines()[0] == "it broke"  # measuring coverage may add a complaint of its own


@BOTH
def test_a_program_that_prints_without_end_is_ended_and_little_is_kept(
    tmp_path: Path, *, is_isolated: bool
) -> None:
    done = run(
        "import sys\nwhile True: sys.stdout.write('x' * 65536)",
        tmp_path,
        limits=Limits(output_bytes=MEGABYTE),
        is_isolated=is_isolated,
    )

    assert done.ended.problem == "It printed over 1 MB."
    assert len(done.out) == MEGABYTE


@BOTH
def test_at_the_time_limit_a_program_is_ended(tmp_path: Path, *, is_isolated: bool) -> None:
    done = run("import time; time.sleep(600)", tmp_path, limits=Limits(seconds=1), is_isolated=is_isolated)

    assert done.ended.problem == "It took over 1 s."


DOUBLE_FORK = """
import os, pathlib, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        pathlib.Path("pid").write_text("alive")
        while True:
            time.sleep(0.05)
            pathlib.Path("beat").write_text(str(time.time()))
    os._exit(0)
while not pathlib.Path("beat").exists():
    time.sleep(0.01)
print(1)
"""


@LINUX
@BOTH
def test_a_double_fork_does_not_outlive_the_run(tmp_path: Path, *, is_isolated: bool) -> None:
    done = run(DOUBLE_FORK, tmp_path, is_isolated=is_isolated)

    assert (done.out, done.ended.problem) == ("1\n", ""), done.err
    beat = tmp_path / "fresh" / "beat"
    until = time.monotonic() + PATIENCE
    while True:  # it may have been killed in the middle of a beat
        last = beat.stat().st_mtime_ns
        time.sleep(0.3)
        if beat.stat().st_mtime_ns == last:
            break
        assert time.monotonic() < until, "it still beats"


@LINUX
def test_a_fork_bomb_is_ended(tmp_path: Path) -> None:
    program = "import os, time\nfor _ in range(40):\n  if os.fork() == 0: time.sleep(600)\ntime.sleep(600)"

    done = run(program, tmp_path, limits=Limits(seconds=PATIENCE, processes=20))

    assert done.ended.problem == "It had over 20 processes."


@LINUX
def test_too_much_memory_is_ended(tmp_path: Path) -> None:
    program = "import time\nheld = [bytes([1]) * (1 << 20) for _ in range(300)]\ntime.sleep(600)"

    done = run(program, tmp_path, limits=Limits(seconds=PATIENCE, memory_bytes=150 * MEGABYTE))

    assert done.ended.problem == "It used over 150 MB of memory."


SOCKETS = """
import os, stat
open_files = []
for number in range(64):
    try:
        open_files.append(os.fstat(number).st_mode)
    except OSError:
        pass
print([mode for mode in open_files if stat.S_ISSOCK(mode)])
"""


@POSIX
def test_a_program_does_not_hold_the_clock(tmp_path: Path) -> None:
    done = run(SOCKETS, tmp_path)

    assert done.out == "[]\n", done.err


@POSIX
def test_a_program_that_ends_its_own_shell_has_no_time(tmp_path: Path) -> None:
    done = run("import os, signal; os.kill(os.getppid(), signal.SIGKILL)", tmp_path)

    assert done.ended.problem == "It did not run to its end, or interfered with the clock."


EARLY_END = """
import ctypes, os, struct, time
steal = lambda number: ctypes.CDLL(None).syscall(438, os.pidfd_open(1), number, 0)  # pidfd_getfd
clock, status = steal(0), steal(4)
if clock < 0:
    print("not allowed")
else:
    os.write(clock, b"0m0.00s 0m0.00s\\n0m0.00s 0m0.00s\\n")
    time.sleep(0.5)
    print("late", flush=True)
    os.write(status, struct.pack("Q", 1))  # bubblewrap takes it for an end with status 0
    time.sleep(600)
"""


@ISOLATED
def test_what_is_printed_after_an_end_that_the_program_reported_itself_does_not_count(tmp_path: Path) -> None:
    """A system that restricts ptrace (kernel.yama.ptrace_scope) does not let it take the clock at all."""
    done = run(EARLY_END, tmp_path, is_isolated=True)

    assert (done.out, done.ended.status) in {("", 0), ("not allowed\n", 0)}, done.err


@POSIX
def test_all_that_is_in_the_pipe_at_the_end_counts(tmp_path: Path) -> None:
    program = "import os; os.write(1, b'x' * 500_000); os.write(1, b'\\n4711\\n'); os._exit(0)"

    for number in range(5):
        (tmp_path / str(number)).mkdir()
        assert run(program, tmp_path / str(number)).out == "x" * 500_000 + "\n4711\n"


@LINUX
def test_descendants_are_found_with_their_children() -> None:
    assert os.getpid() in descendants(os.getppid())
