"""The aoc bridge measured: recording, ranking, its start, and whether kills lose anything."""
