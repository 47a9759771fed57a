"""Queues in the live scheduler: turns, gate removal, reservations, evictions and statuses."""
