"""What is wrong with workloads: sets of pods, Jobs, and the budgets that protect them."""
