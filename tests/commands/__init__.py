"""Tests of what a person runs beside the bridges."""
