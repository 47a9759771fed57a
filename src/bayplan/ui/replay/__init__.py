"""Recordings on the page: any moment of them, what follows from there, and a time line."""
