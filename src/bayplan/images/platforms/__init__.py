"""Platforms: what an image was built for, what a runtime handler can run, and how they match."""
