"""Tests of the mercury bridge: calling."""
