"""Node groups declared in YAML: in a file, or as NodeGroup objects of the cluster."""
