"""How long a task takes from its creation until it is seen completed: ours beside fastmcp-tasks."""
