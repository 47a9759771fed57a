"""Names of resources and their categories."""

from __future__ import annotations

import hashlib
from string import hexdigits

from bayplan.kube.names import is_qualified_name

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

GPU_RESOURCES = (
    "nvidia.com/gpu",
    "habana.ai/gaudi",
    "gpu.intel.com/xe",
    "amd.com/gpu",
    "microsoft.com/directx",
)
"""The GPU resources that Cluster Autoscaler knows."""
HUGEPAGES_PREFIX = "hugepages-"
ATTACH_LIMIT_PREFIXES = ("attachable-volumes-", "storage-attach-limits-")
"""The prefix that Kubernetes shipped, then the one that was proposed; both are read."""

_NATIVE_DOMAIN = "kubernetes.io/"
_QUOTA_PREFIX = "requests."
_CSI = "csi-"
_NAME_LIMIT = 63
_HASH_DIGITS = 16


def is_hugepage(name: str) -> bool:
    """Return whether a resource is a size of huge pages, such as `hugepages-2Mi`."""
    return name.startswith(HUGEPAGES_PREFIX)


def is_attach_limit(name: str) -> bool:
    """Return whether a resource is a node's attach limit, which a pod cannot request."""
    return name.startswith(ATTACH_LIMIT_PREFIXES)


def is_extended(name: str) -> bool:
    """Return whether a resource is an extended one, such as `nvidia.com/gpu`."""
    if "/" not in name or _NATIVE_DOMAIN in name or name.startswith(_QUOTA_PREFIX):
        return False
    return is_qualified_name(_QUOTA_PREFIX + name)


def is_scalar(name: str) -> bool:
    """Return whether a resource is a scalar besides cpu, memory and ephemeral storage."""
    return is_hugepage(name) or is_attach_limit(name) or _NATIVE_DOMAIN in name or is_extended(name)


def csi_attach_limit_key(driver: str, prefix: str = ATTACH_LIMIT_PREFIXES[0]) -> str:
    """Return the key of a CSI driver's limit in a node's allocatable.

    A key of 63 characters or more is too long for a resource and is shortened to its beginning and
    a hash: 23 characters of the driver's name after the prefix that Kubernetes shipped, and 20
    after the one that was proposed, which is longer.
    """
    key = f"{prefix}{_CSI}{driver}"
    if len(key) < _NAME_LIMIT:
        return key
    digest = hashlib.sha1(driver.encode(), usedforsecurity=False).hexdigest()[:_HASH_DIGITS]
    return key[: _NAME_LIMIT - 1 - _HASH_DIGITS] + digest


def csi_attach_limit_driver(key: str) -> str:
    """Return the CSI driver of a key in a node's allocatable; empty if it is unknown."""
    for prefix in ATTACH_LIMIT_PREFIXES:
        if key.startswith(prefix + _CSI) and len(key) < _NAME_LIMIT and not _is_shortened(key):
            return key.removeprefix(prefix + _CSI)
    return ""


def _is_shortened(key: str) -> bool:
    return len(key) == _NAME_LIMIT - 1 and set(key[-_HASH_DIGITS:]) <= set(hexdigits.lower())
