"""Requests on their way: connections, bounds, budget, and another try where that is safe."""
