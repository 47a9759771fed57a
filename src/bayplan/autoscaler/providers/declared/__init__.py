"""Groups declared in plain YAML: in a file, or as NodeGroup objects of the cluster."""
