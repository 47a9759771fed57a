"""Volumes: who stands behind one, how many a node can attach, and where a claim can be served."""
