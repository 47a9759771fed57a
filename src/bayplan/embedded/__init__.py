"""A whole cluster in a process: the API server, and the simulated cluster around it."""
