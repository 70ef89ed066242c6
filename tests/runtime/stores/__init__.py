"""Tests of the stores that processes share."""
