"""Tests, laid out like the package that they test."""
