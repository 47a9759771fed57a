"""Recordings on the page: the state at any time, the changes after it, and a timeline."""
