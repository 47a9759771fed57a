"""Nodes bought and given back: what pods need and no node has, volumes counted.

A loop reads the cluster and the cloud, decides in pure functions over a snapshot (`scaleup`,
`scaledown`, `expanders`), keeps what it decided as a plan, and has it carried out. The words, names
and defaults are Cluster Autoscaler's.
"""
