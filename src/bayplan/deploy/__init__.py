"""How Bayplan is run in a cluster: the kinds it needs, and all objects that run it."""
