"""Unpacking layers safely: hostile archives in, one complete root file system a chain out."""
