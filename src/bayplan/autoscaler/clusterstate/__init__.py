"""The state of nodes, pending pods and node groups, kept from loop to loop."""
