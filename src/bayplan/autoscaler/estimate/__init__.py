"""What scale-ups are estimated from: upcoming nodes, limits, and node group options."""
