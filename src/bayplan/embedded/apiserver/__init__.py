"""An API server in a process: one event loop, one SQLite file, the Kubernetes API.

Objects are plain JSON. `store` keeps their serialized bytes and the history of changes, `rest` has
the operations on them, and `http` the HTTP layer.
"""
