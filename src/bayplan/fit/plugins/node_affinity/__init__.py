"""NodeAffinity: the nodes that a pod may, or would rather, go to."""
