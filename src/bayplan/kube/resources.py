"""Names of resources, and what kind each is."""

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
"""What vendors call their GPUs, as Cluster Autoscaler knows them."""
HUGEPAGES_PREFIX = "hugepages-"
ATTACH_LIMIT_PREFIXES = ("attachable-volumes-", "storage-attach-limits-")
"""The key that Kubernetes shipped first, then the one that was proposed; both are read."""

_NATIVE_DOMAIN = "kubernetes.io/"
_QUOTA_PREFIX = "requests."
_CSI = "csi-"
_NAME_LIMIT = 63
_HASH_DIGITS = 16


def is_hugepage(name: str) -> bool:
    """Whether it is a size of huge pages, such as `hugepages-2Mi`."""
    return name.startswith(HUGEPAGES_PREFIX)


def is_attach_limit(name: str) -> bool:
    """Whether it is a node's limit of attached volumes rather than something a pod can ask for."""
    return name.startswith(ATTACH_LIMIT_PREFIXES)


def is_extended(name: str) -> bool:
    """Whether Kubernetes itself knows nothing of it, as with `nvidia.com/gpu`."""
    if "/" not in name or _NATIVE_DOMAIN in name or name.startswith(_QUOTA_PREFIX):
        return False
    return is_qualified_name(_QUOTA_PREFIX + name)


def is_scalar(name: str) -> bool:
    """Whether a node counts it in a plain number next to cpu, memory and ephemeral storage."""
    return is_hugepage(name) or is_attach_limit(name) or _NATIVE_DOMAIN in name or is_extended(name)


def csi_attach_limit_key(driver: str, prefix: str = ATTACH_LIMIT_PREFIXES[0]) -> str:
    """The key in a node's allocatable under which a CSI driver's limit stands.

    A name of 63 characters or more is too long for a resource and is shortened to its beginning and
    a hash: 23 characters of the driver's name behind the prefix that Kubernetes shipped, and 20
    behind the one that was proposed, which is longer.
    """
    key = f"{prefix}{_CSI}{driver}"
    if len(key) < _NAME_LIMIT:
        return key
    digest = hashlib.sha1(driver.encode(), usedforsecurity=False).hexdigest()[:_HASH_DIGITS]
    return key[: _NAME_LIMIT - 1 - _HASH_DIGITS] + digest


def csi_attach_limit_driver(key: str) -> str:
    """The CSI driver whose limit a key in a node's allocatable is; empty if it does not say."""
    for prefix in ATTACH_LIMIT_PREFIXES:
        if key.startswith(prefix + _CSI) and len(key) < _NAME_LIMIT and not _is_shortened(key):
            return key.removeprefix(prefix + _CSI)
    return ""


def _is_shortened(key: str) -> bool:
    return len(key) == _NAME_LIMIT - 1 and set(key[-_HASH_DIGITS:]) <= set(hexdigits.lower())
