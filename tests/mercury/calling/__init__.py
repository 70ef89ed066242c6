"""Tests of mercury's calling."""
