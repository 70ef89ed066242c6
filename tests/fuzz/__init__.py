"""Fuzzing with atheris: bytes for the HTTP server and for JSON-RPC. See README.md.

`make fuzz` searches for a while and adds an input that breaks something to the corpus; `make test` tries the
corpus.
"""
