"""Windows: runs the tests on the real CPython for Windows, under Wine."""
