"""What pods need of storage, and what their volumes take, in a cluster as it now is."""
