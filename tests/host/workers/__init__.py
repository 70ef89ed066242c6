"""Tests of the processes that serve."""
