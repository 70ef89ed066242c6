"""Tests of `bridgehead.aoc.files`."""
