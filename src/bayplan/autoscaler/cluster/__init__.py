"""The cluster as the autoscaler keeps it: pods that wait, nodes that come, templates of more."""
