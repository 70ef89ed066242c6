"""Tests of the optional type checker."""
