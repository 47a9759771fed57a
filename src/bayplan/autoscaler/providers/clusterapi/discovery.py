"""Which resources are groups: `clusterapi:namespace=…,clusterName=…,label=value`, may be repeated.

Without any, all are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bayplan.autoscaler.providers.clusterapi.kinds import Scalable
from bayplan.autoscaler.providers.clusterapi.words import Words
from bayplan.autoscaler.providers.options import ProviderOptionError
from bayplan.kube.names import is_label_value, is_qualified_name

_FLAG = "--node-group-auto-discovery"
_DISCOVERER = "clusterapi"


@dataclass(frozen=True, slots=True)
class Spec:
    """Those of a namespace, of a cluster, with labels."""

    namespace: str = ""
    cluster: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def takes(self, one: Scalable, words: Words) -> bool:
        """Whether a resource is among them."""
        labels = one.metadata.labels
        cluster = one.spec.cluster_name or labels.get(words.cluster_name, "")
        return (
            self.namespace in {"", one.namespace}
            and self.cluster in {"", cluster}
            and all(labels.get(key) == value for key, value in self.labels.items())
        )


def read_spec(text: str) -> Spec:
    """What a flag says; ProviderOptionError if it cannot be read."""
    discoverer, _, rest = text.partition(":")
    if discoverer != _DISCOVERER:
        raise ProviderOptionError(f"{_FLAG} {text[:80]!r}: must begin with {_DISCOVERER}:")
    pairs = [one.partition("=") for one in rest.split(",") if one]
    for key, equals, value in pairs:
        if not equals or not is_qualified_name(key) or not is_label_value(value):
            raise ProviderOptionError(f"{_FLAG} {text[:80]!r}: {key[:80]!r} is no key=value")
    said = {key: value for key, _, value in pairs}
    return Spec(said.pop("namespace", ""), said.pop("clusterName", ""), said)


def common_namespace(specs: Sequence[Spec]) -> str:
    """The namespace that all are of; empty if they are not of one."""
    named = {one.namespace for one in specs}
    return named.pop() if len(named) == 1 else ""
