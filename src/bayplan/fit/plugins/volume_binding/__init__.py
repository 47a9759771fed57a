"""VolumeBinding: claims must be bound to volumes that a node reaches, or be served there."""
