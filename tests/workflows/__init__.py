"""Workflows: lints what a public CI runs, and compares it with what the project promises."""
