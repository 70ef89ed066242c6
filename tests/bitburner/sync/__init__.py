"""Tests of a folder and the game in step."""
