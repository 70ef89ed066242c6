"""All code that knows adventofcode.com: the user's cookie, polite requests, its pages.

Used only when asked.
"""
