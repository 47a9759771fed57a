"""CustomResourceDefinitions, and validation of custom resources by their schemas."""
