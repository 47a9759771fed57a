"""Objects as `kubectl get` shows them: columns and cells."""
