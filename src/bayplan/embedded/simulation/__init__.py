"""The simulated cluster: cluster file, wiring, schedule, log and report."""
