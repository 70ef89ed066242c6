"""Pythons: runs tests on every version of Python that the classifiers promise."""
