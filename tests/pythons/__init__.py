"""Pythons: runs the engine's tests on the other versions of Python that this machine has."""
