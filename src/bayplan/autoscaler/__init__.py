"""Scale-up and scale-down of node groups, with attach limits of volumes counted.

A loop reads the cluster and the cloud, decides in pure functions over a snapshot (`scaleup`,
`scaledown`, `expanders`), keeps its decisions as a plan, and executes it (`actuation`). Terms,
names and defaults are Cluster Autoscaler's.
"""
