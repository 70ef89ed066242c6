"""Thirty jobs, played by a scripted agent that knows only what a model is shown."""
