"""The page in a real browser: Debian's chromium, driven by playwright, on a real server."""
