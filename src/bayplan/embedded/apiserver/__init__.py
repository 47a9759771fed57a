"""An API server in a process: one event loop, one SQLite file, the Kubernetes API.

Objects are plain JSON here. The `store` keeps their serialized bytes and the history of changes,
the `rest` room decides what a request does to them, and the `http` room speaks with clients.
"""
