"""Custom resources: kinds that objects define, with schemas of their own."""
