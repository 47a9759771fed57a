"""The state of node groups in the cloud, and their backoff after failed scale-ups."""
