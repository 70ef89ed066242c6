"""Tests of `bridgehead.aoc.site`."""
