"""Chaos: replicas under load and under faults, judged by the books of the far sides."""
