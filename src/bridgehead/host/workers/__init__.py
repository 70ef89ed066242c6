"""Processes that serve: one alone, or several behind one port that share sessions and metrics."""
