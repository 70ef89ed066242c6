"""The Mercury API: everything that knows its wire."""
