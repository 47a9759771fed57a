"""What runs Bayplan in a cluster, and that it does."""
