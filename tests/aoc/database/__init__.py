"""Tests of records in a database."""
