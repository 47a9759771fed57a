"""The GPUs of nodes: which resource they are, and whether they are there yet."""

from __future__ import annotations

from bayplan.kube.nodes import Node
from bayplan.kube.quantity import milli_value
from bayplan.kube.resources import GPU_RESOURCES


def gpu_resource(node: Node, gpu_label: str) -> str | None:
    """The resource that a node's GPUs are; None if it has none, nor a label that says so."""
    found = _allocatable(node)
    if found is not None:
        return found
    return GPU_RESOURCES[0] if gpu_label and gpu_label in node.metadata.labels else None


def has_gpu(node: Node) -> bool:
    """Whether a node has a GPU that can be used."""
    return _allocatable(node) is not None


def _allocatable(node: Node) -> str | None:
    amounts = node.status.allocatable
    return next((name for name in GPU_RESOURCES if milli_value(amounts.get(name, 0))), None)
