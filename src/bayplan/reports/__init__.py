"""Reports about a cluster as data, used by the commands and by the page.

A report is a pure function over objects or a snapshot: pending pods and their causes, the next
plan, queues, volumes, findings. `*_data` returns the JSON and YAML output in its stable format.
"""
