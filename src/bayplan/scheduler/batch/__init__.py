"""Queues in the live scheduler: who may be tried, who is let in, and what is written of it."""
