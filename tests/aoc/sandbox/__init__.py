"""Tests of what runs programs of others."""
