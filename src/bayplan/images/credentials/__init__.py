"""Credentials for images: Docker's files, pull secrets, and who opened which image."""
