"""Constants of the product with other values, in a real process: short waits and small limits for a test.

`python -m tests.support.constants mercury` is `bridgehead mercury`, after what the variable TEST_CONSTANTS
says (JSON, `{"module:NAME": value}`). What nobody needs to set in use is no setting, and a test need not wait
thirty seconds for it.
"""

import json
import os
import sys
from collections.abc import Mapping
from importlib import import_module

VARIABLE = "TEST_CONSTANTS"


def split(settings: Mapping[str, str]) -> dict[str, str]:
    """Turn the `module:NAME` among some settings into the variable that a process reads them from."""
    constants = {name: json.loads(value) for name, value in settings.items() if ":" in name}
    variables = {name: value for name, value in settings.items() if ":" not in name}
    return variables | ({VARIABLE: json.dumps(constants)} if constants else {})


def apply() -> None:
    """Set the constants, which has to come before other modules import them by name."""
    for place, value in json.loads(os.environ.pop(VARIABLE, "{}")).items():
        module_name, _, name = place.partition(":")
        module = import_module(module_name)
        assert hasattr(module, name), f"{place} is gone"
        setattr(module, name, value)


if __name__ == "__main__":
    apply()
    from bridgehead.cli import main

    sys.exit(main())
