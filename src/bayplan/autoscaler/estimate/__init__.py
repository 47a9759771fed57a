"""The inputs of scale-up estimates: upcoming nodes, limits, and node group options."""
