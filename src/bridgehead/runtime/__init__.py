"""What at least two bridges need: settings, errors, logs, metrics, durable files, places, backoff, a clock.

Knows no bridge. Every module here is cheap to import, because a server's first answer waits for it; what is
dear (logging, rich, argparse) is loaded when it is used.
"""
