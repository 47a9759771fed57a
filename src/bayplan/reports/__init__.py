"""What is shown to people, as data: used by commands and by the page alike.

A report is a plain function over objects or a snapshot: pods that wait and why, the next plan,
queues, volumes, findings. `*_data` gives it as JSON and YAML have it, in a shape that is stable.
"""
