"""NodeResourcesFit: what a pod requests must be free; emptier nodes are better."""
