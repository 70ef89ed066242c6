"""Tests of what is known of the API and of scripts."""
