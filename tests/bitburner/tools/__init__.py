"""Tests of the bitburner bridge."""
