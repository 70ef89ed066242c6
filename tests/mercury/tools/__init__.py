"""Tests of the mercury bridge: tools."""
