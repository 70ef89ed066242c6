"""The gate of the worst calls: every tool is in its table."""

from bench.host.worst_arguments import WORST
from bridgehead.runtime import plugins
from bridgehead.runtime.manifest import make_bridge

NEEDED = {"MERCURY_API_KEY": "sk_0123456789abcdef"}


def test_every_tool_has_its_worst_arguments_in_the_table_and_they_are_accepted() -> None:
    """A new tool extends `bench/host/worst_arguments.py`, so that `make worst` calls it."""
    tools = {
        tool.name: tool
        for name in plugins.built_in_names()
        for tool in make_bridge(plugins.load(name), NEEDED).tools.values()
    }
    assert sorted(WORST) == sorted(tools)
    for name, calls in WORST.items():
        known = set(tools[name].input_schema.get("properties", {}))
        assert calls, name
        for arguments in calls:
            assert set(arguments) <= known, name
