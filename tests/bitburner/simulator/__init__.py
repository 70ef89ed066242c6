"""Tests of the simulated game."""
