"""The Container Runtime Interface's image half: its messages, a typed client, and our service."""
