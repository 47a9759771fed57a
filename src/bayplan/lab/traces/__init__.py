"""Work as it came elsewhere: traces in CSV, and what they become in a simulated cluster."""
