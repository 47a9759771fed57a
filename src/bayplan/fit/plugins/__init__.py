"""Plugins: one module or folder each, with all that there is of it, and one registry.

A filter says of every node at once whether it may take a pod, and why one may not; a score says how
good each node is that passes the filters, 0 to 100 times the plugin's weight. See `plugin` for what
a plugin is, and `registry` for which there are.
"""
