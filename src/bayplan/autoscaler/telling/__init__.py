"""What people and programs are told: events, the status ConfigMap, metrics and plans."""
