"""Tables of objects for `kubectl get`."""
