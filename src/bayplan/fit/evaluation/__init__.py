"""Which nodes fit a pod and how they rank, kept and brought up to date as nodes change."""
