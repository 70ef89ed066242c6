"""Tests of the HTTP transport, over real sockets."""
