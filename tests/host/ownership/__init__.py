"""Ownership of sessions and tasks, and the way to their process."""
