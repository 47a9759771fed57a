"""Runs as an indexed Job on any Kubernetes cluster, where one machine is not enough.

The Job's pods need nothing of the cluster but to fill in one ConfigMap each: the inputs are a
mounted ConfigMap, and the role names the ConfigMaps that wait for results. Everything belongs to
the Job and goes with it, which the command deletes at its end, however that comes; should the
command be killed, the Job goes by itself an hour after it has finished.
"""
