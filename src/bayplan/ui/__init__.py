"""The page of a cluster: what it is told, and how it is served."""
