"""Tests of the way to the API."""
