"""The tools, resources and prompts of the aoc bridge."""
