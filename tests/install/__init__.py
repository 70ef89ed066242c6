"""Tests of what `bridgehead install` does to configuration files."""
