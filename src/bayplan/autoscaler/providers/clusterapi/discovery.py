"""Selects groups by `clusterapi:namespace=…,clusterName=…,label=value`, which may be repeated.

Without it, all are selected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bayplan.autoscaler.providers.clusterapi.objects import ApiNames, Scalable
from bayplan.autoscaler.providers.options import ProviderOptionError
from bayplan.kube.names import is_label_value, is_qualified_name

_FLAG = "--node-group-auto-discovery"
_DISCOVERER = "clusterapi"


@dataclass(frozen=True, slots=True)
class DiscoverySpec:
    """Selects groups by namespace, cluster and labels."""

    namespace: str = ""
    cluster: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def takes(self, one: Scalable, names: ApiNames) -> bool:
        """Whether a resource is selected."""
        labels = one.metadata.labels
        cluster = one.spec.cluster_name or labels.get(names.cluster_name, "")
        return (
            self.namespace in {"", one.namespace}
            and self.cluster in {"", cluster}
            and all(labels.get(key) == value for key, value in self.labels.items())
        )


def read_spec(text: str) -> DiscoverySpec:
    """Parse the flag; ProviderOptionError if it is invalid."""
    discoverer, _, rest = text.partition(":")
    if discoverer != _DISCOVERER:
        raise ProviderOptionError(f"{_FLAG} {text[:80]!r}: must begin with {_DISCOVERER}:")
    pairs = [one.partition("=") for one in rest.split(",") if one]
    for key, equals, value in pairs:
        if not equals or not is_qualified_name(key) or not is_label_value(value):
            raise ProviderOptionError(f"{_FLAG} {text[:80]!r}: {key[:80]!r} is not key=value")
    values = {key: value for key, _, value in pairs}
    return DiscoverySpec(values.pop("namespace", ""), values.pop("clusterName", ""), values)


def common_namespace(specs: Sequence[DiscoverySpec]) -> str:
    """Return the namespace of all specs; empty if they have several."""
    named = {one.namespace for one in specs}
    return named.pop() if len(named) == 1 else ""
