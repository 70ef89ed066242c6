"""Tests of the benchmark of agents."""
