"""The whole cluster: read from a file, wired together, run on the wall or in virtual time."""
