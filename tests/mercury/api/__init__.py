"""Tests of the mercury bridge: api."""
