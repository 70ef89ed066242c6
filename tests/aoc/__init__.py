"""The aoc bridge."""
