"""The verbs of the API: get, list, watch, create, update, patch, delete, and subresources."""
