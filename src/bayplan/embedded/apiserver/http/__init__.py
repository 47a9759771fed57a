"""The HTTP layer: paths, queries, bodies and media types; responses and streams."""
