"""Servers that the aoc bridge is measured beside."""
