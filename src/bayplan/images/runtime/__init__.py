"""A container runtime as its clients see it: images, filesystems and containers through the CRI."""
