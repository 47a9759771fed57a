"""Clients of a container runtime: images, filesystems and containers through the CRI."""
