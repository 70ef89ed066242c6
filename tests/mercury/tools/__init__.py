"""Tests of mercury's tools."""
