"""A simulated cloud: node groups, instance types, prices, and what can go wrong when buying."""
