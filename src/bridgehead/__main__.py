"""Lets `python -m bridgehead` be the `bridgehead` command."""

from bridgehead.cli import main

raise SystemExit(main())
