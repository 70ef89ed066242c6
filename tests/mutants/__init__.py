"""Mutation testing of the modules where a silent fault loses data or lets someone in. See README.md."""
