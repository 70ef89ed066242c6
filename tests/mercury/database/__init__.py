"""Tests of what replicas count together."""
