"""Garbage collection of images, by (image, runtime handler)."""
