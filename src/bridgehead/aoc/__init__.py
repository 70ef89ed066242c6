"""The aoc bridge: Advent of Code puzzle texts and solve-speed records, on disk, shared by several writers."""
