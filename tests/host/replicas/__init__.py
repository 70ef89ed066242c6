"""Tests of hosts that share."""
