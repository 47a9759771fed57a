"""Version skew between kubelets and the API server.

Kubernetes supports kubelets up to three minor versions older than the API server, and none newer.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.findings import CheckKind, Example, Finding, Severity, make_finding, plural
from bayplan.kube.nodes import Node

MOST_OLDER = 3
NEWER = CheckKind(
    "KubeletNewer",
    Severity.ERROR,
    "a kubelet is newer than the API server",
    "Kubernetes does not support it: the kubelet may use APIs that the server does not have.",
    "Upgrade the control plane, or downgrade these nodes to its version.",
    (Node,),
)
OLDER = CheckKind(
    "KubeletTooOld",
    Severity.ERROR,
    f"a kubelet is more than {MOST_OLDER} minor versions older than the API server",
    "Kubernetes does not support it: APIs that such kubelets use may be removed.",
    "Replace these nodes, or upgrade their kubelets one minor version after another.",
    (Node,),
)
SKEW = CheckKind(
    "KubeletVersionSkew",
    Severity.WARNING,
    f"kubelets differ by more than {MOST_OLDER} minor versions",
    "No version of the API server supports both.",
    "Replace the oldest nodes before the control plane is upgraded.",
    (Node,),
)
KINDS = (NEWER, OLDER, SKEW)
_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?!\d)")


class Version(NamedTuple):
    """A major and minor version."""

    major: int
    minor: int

    @classmethod
    def read(cls, text: str) -> Version | None:
        """Parse a version: `v1.36.4-eks-1` is 1.36; None if it is not a version."""
        match = _VERSION.match(text)
        return cls(int(match[1]), int(match[2])) if match else None

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


def find(cluster: CheckedCluster) -> Iterator[Finding]:
    """Compare kubelets with the server, or with each other if its version is unknown."""
    kubelets: defaultdict[Version, list[Example]] = defaultdict(list)
    for node in cluster.nodes.values():
        text = node.status.node_info.kubelet_version if node.status.node_info else ""
        if (version := Version.read(text)) is not None:
            kubelets[version].append(Example(node.name, text[:60]))
    server = Version.read(cluster.server_version)
    if server is not None:
        yield from _beside(server, kubelets)
    elif kubelets:
        yield from _among(kubelets)


def _beside(server: Version, kubelets: dict[Version, list[Example]]) -> Iterator[Finding]:
    newer = [one for version, some in kubelets.items() if version > server for one in some]
    older = [one for version, some in kubelets.items() if _too_old(version, server) for one in some]
    if newer:
        text = f"{plural(len(newer), 'kubelet')} newer than the API server, which is {server}"
        yield make_finding(NEWER, "Node", newer, text)
    if older:
        text = f"{plural(len(older), 'kubelet')} too old for the API server, which is {server}"
        yield make_finding(OLDER, "Node", older, text)


def _among(kubelets: dict[Version, list[Example]]) -> Iterator[Finding]:
    newest = max(kubelets)
    old = [one for version, some in kubelets.items() if _too_old(version, newest) for one in some]
    if old:
        text = f"{plural(len(old), 'kubelet')} more than {MOST_OLDER} versions older than {newest}"
        yield make_finding(SKEW, "Node", old, text)


def _too_old(version: Version, newest: Version) -> bool:
    if version.major != newest.major:
        return version.major < newest.major
    return version.minor < newest.minor - MOST_OLDER
