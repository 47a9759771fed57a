"""A simulated cloud: node groups, instance types, prices and faults."""
