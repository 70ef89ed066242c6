"""A program that tells what it was started with: `python -m tests.support.process_probe [WORDS]`.

Afterwards it ends as its first word says: `exit` with the status or text that follows, `raise` with an
exception, `wait` when a signal ends it.
"""

import json
import os
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    word, *rest = sys.argv[1:]
    seen = {
        "arguments": sys.argv[1:],
        "program": sys.argv[0],
        "input": sys.stdin.read(),
        "folder": str(Path.cwd()),
        "environment": dict(os.environ),
        "parent": os.getppid(),
        "leads a session": os.getsid(0) == os.getpid(),
        "streams": [(one.encoding, one.errors, one.isatty()) for one in (sys.stdin, sys.stdout, sys.stderr)],
        "descriptors": sorted(
            path.name for path in Path("/proc/self/fd").iterdir()
        ),  # beside the one that lists them
        "time zone": time.tzname,
        "path": sys.path[0],
    }
    sys.stdout.write(json.dumps(seen) + "\n")
    sys.stdout.flush()
    sys.stderr.write("an error\n")
    if word == "exit":
        sys.exit(int(rest[0]) if rest[0].isdigit() else rest[0])
    if word == "raise":
        raise LookupError(rest[0])
    while True:
        time.sleep(1)
