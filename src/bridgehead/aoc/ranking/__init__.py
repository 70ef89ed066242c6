"""Ranking: figures, boards and histories of recorded times, and their output formats."""
