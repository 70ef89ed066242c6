"""Another user of a shared folder, in a process of their own."""

import os
import warnings
from pathlib import Path

from bridgehead.aoc.files.day_file import DayFile
from bridgehead.aoc.files.locking import FolderLock
from bridgehead.runtime.timing import SystemClock
from tests.aoc.data import SECONDS, new


def record_as(user: int, group: int, folder: Path) -> int:
    """Record in a process of another user, who is in the folder's group; return its exit status."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the child does nothing that another thread could have locked
        child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        os.setgroups([group])
        os.setgid(user)
        os.setuid(user)
        os.umask(0o022)
        DayFile(FolderLock(str(folder), SECONDS), 1, SystemClock()).append([new(user)])
        os._exit(0)
    finally:
        os._exit(1)
