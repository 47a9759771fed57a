"""Plugins: one module or folder each, with everything about it, and one registry.

A filter decides for all nodes at once whether a pod may go there, and why not; a score rates each
node that passes the filters, 0 to 100 times the plugin's weight. See `plugin` for what
a plugin is, and `registry` for which there are.
"""
