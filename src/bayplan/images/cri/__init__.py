"""The CRI: its messages, a typed client, and our ImageService."""
