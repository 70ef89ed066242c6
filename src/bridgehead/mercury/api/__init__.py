"""The Mercury API: all code that knows its wire format."""
