"""Tests of `bridgehead.aoc.tools`."""
