"""Pulls of images for a runtime handler: manifest selection, downloads, and unpacking."""
