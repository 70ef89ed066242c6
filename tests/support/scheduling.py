"""Scheduling: which worker runs the tests of which file, also after one of the workers has died.

xdist offers all files of a dead worker to the others again, those too of which every test had been run. Who
is given such a file has nothing to do and reports nothing, so it is given nothing else, and the run waits for
ever. It also offers the test again at which the worker died.
"""

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]  # it comes without types
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]

BEGIN_FIRST = (
    "tests/host/test_replicas_on_one_port.py",
    "tests/test_run_settings.py",
    "tests/aoc/database/test_faults.py",
    "tests/release/test_dist.py",
    "tests/mercury/test_every_cent.py",
    "tests/host/test_tasks.py",
    "tests/test_plugin_bridge.py",
    "tests/aoc/bench/test_command.py",
    "tests/mercury/calling/test_sqlite_usage.py",
    "tests/bitburner/test_chaos.py",
    "tests/host/telemetry/test_exporting.py",
)
"""Files with few tests that take seconds each. xdist begins with the files that have most tests, so these
came last, and one worker was busy with them when the others had nothing left to do."""


class FileScheduling(LoadFileScheduling):  # type: ignore[misc]  # of a class that has no type
    """Hands out whole files, and of a dead worker's files what is left of them."""

    def remove_node(self, node: WorkerController) -> str | None:
        """Forget a worker; returns the test at which it died, if it did."""
        files = self.assigned_work.pop(node)
        left = [
            (file, test) for file, tests in files.items() for test, is_done in tests.items() if not is_done
        ]
        if not left:
            return None
        died_at: str = left[0][1]
        for file, test in left[1:]:
            self.workqueue.setdefault(file, {})[test] = False
        for other in self.nodes:
            self._reschedule(other)
        return died_at

    def _assign_work_unit(self, node: WorkerController) -> None:
        for file in reversed(BEGIN_FIRST):
            if file in self.workqueue:
                self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        super()._reschedule(node)
        # A worker begins a test when it knows the next one: one that has a single test waits.
        while self.workqueue and not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            self._assign_work_unit(node)
