"""Tests of who may use the host."""
