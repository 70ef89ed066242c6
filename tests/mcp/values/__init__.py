"""Tests of what a bridge declares, one noun a file."""
