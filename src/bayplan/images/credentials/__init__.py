"""Credentials for images: Docker's files, pull secrets, plugins, and the records of pulls."""
