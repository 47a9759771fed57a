"""What can be asked of an API server: reading, watching, writing, patching."""
