"""The loader of msgspec: a server's first answer does not wait for what it does not need."""

import subprocess
import sys

import pytest

from tests.support.children import unmeasured
from tests.support.waiting import PATIENCE


@pytest.mark.parametrize("package", ["mcp", "runtime"])
def test_msgspec_is_loaded_without_typing_extensions_which_others_can_still_use(package: str) -> None:
    program = (
        f"import sys, bridgehead.{package}\n"
        "print('msgspec' in sys.modules, {'typing_extensions'} & sys.modules.keys())\n"
        "import typing_extensions"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True,
        text=True,
        env=unmeasured(),
        timeout=PATIENCE,
        check=True,
    )

    assert done.stdout == "True set()\n"
