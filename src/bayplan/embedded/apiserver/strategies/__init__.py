"""What is special about a kind: its defaults, its first status, the changes it allows."""
