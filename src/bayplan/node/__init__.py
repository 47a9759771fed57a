"""Attach limits of nodes by instance type, and the agent that publishes them: see docs/node.md."""
