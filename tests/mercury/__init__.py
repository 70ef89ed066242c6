"""Tests of the mercury bridge."""
