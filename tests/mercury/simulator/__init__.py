"""Tests of the simulated Mercury API."""
