"""Scale-up: for which pods, of which groups, by how many nodes."""
