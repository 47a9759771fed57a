"""What scheduling looks at in a pod, compiled once for all pods that are equal in it."""
