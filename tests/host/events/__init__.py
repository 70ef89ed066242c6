"""Tests of webhooks and of the stream of events."""
