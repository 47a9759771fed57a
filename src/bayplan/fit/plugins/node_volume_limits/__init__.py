"""NodeVolumeLimits: a node can attach only so many volumes of a driver."""
