"""Kubernetes' own scheduler benchmark, scheduler_perf, with our scheduler.

`python -m bench scheduler-perf --from DIR [NAME…]` reads the workload files and templates from a
checkout of Kubernetes; none of them is kept here.
"""
