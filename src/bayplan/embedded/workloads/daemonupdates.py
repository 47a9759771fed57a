"""Which pods of an older template a DaemonSet replaces now.

A node without a pod that is available counts as unavailable, whether its pod is starting, going or
not made yet. Old pods that are not available go at once; of the others as many as may be
unavailable besides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.control.controller import Delete, Plan
from bayplan.embedded.control.facts import PodFacts
from bayplan.embedded.workloads.daemonpods import REVISION_HASH
from bayplan.embedded.workloads.scaling import scaled
from bayplan.embedded.workloads.template import template_hash

ByNode = Mapping[str, list[tuple[Key, PodFacts]]]
Available = Callable[[PodFacts], bool]


def revision(pod: PodFacts) -> str:
    """The template that a pod was made from."""
    return (pod.metadata.labels or {}).get(REVISION_HASH, "")


def replace_old(owner: JsonObject, wanted: ByNode, available: Available) -> Plan:
    """Delete old pods, given those of every node that should have one."""
    strategy = owner["spec"].get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return []
    digest = template_hash(owner)
    most = (strategy.get("rollingUpdate") or {}).get("maxUnavailable") or 1
    spare = scaled(most, len(wanted), up=True)
    unwell: list[tuple[Key, PodFacts]] = []
    well: list[tuple[Key, PodFacts]] = []
    for name in sorted(wanted):
        active = [(key, pod) for key, pod in wanted[name] if pod.active]
        old = [(key, pod) for key, pod in active if revision(pod) != digest]
        if any(available(pod) for _, pod in active):
            well += old
        else:
            spare -= 1
            unwell += old
    return [Delete(key, pod.uid) for key, pod in (*unwell, *well[: max(0, spare)])]
