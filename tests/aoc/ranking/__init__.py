"""Tests of `bridgehead.aoc.ranking`."""
