"""What a bridge's start loads of the runtime costs nothing that the engine has not loaded before."""

import subprocess
import sys

from tests.support.children import unmeasured
from tests.support.waiting import PATIENCE

STARTING = ("durable", "directories", "errors", "logs", "metrics", "settings", "timing")
"""The modules that a bridge may import before its first answer."""

FURTHER = {"_bisect", "bisect"}
"""Modules of the standard library that these load beyond msgspec's own: small ones, in C."""

PROGRAM = """
import sys, msgspec
before = set(sys.modules)
for name in sys.argv[1:]:
    __import__("bridgehead.runtime." + name)
print(*sorted(set(sys.modules) - before))
"""


def test_the_modules_of_a_start_load_nothing_dear() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, *STARTING],
        capture_output=True,
        text=True,
        env=unmeasured(),
        timeout=PATIENCE,
        check=True,
    )

    packages = {"bridgehead", "bridgehead.msgspec_loader", "bridgehead.runtime"}
    ours = packages | {f"bridgehead.runtime.{name}" for name in STARTING}
    assert set(done.stdout.split()) == ours | FURTHER
