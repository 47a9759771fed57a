"""Many runs of clusters in virtual time: variants, seeds, processes and their results."""
