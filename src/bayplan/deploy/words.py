"""What one value may be: a pattern, and what people call it.

The same patterns are in values.schema.json, which Helm reads in Go: so they have no look-ahead. The
end is `\\Z` here, where `$` would let a newline pass, and `$` there.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeGuard

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bayplan.kube.gates import DEFAULTS

END = r"\Z"


def _is(pattern: str, what: str, longest: int | None = None) -> Meta:
    return Meta(pattern=f"^(?:{pattern}){END}", description=what, max_length=longest)


_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(?:\.{_LABEL})*"
_WORD = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_PREFIXED = rf"{_SUBDOMAIN}/{_WORD}"
_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DIGEST = r"@sha(?:256:[0-9a-f]{64}|512:[0-9a-f]{128})"
_N = "[1-9][0-9]*"
_GATE = rf"(?:{'|'.join(DEFAULTS)})=(?:true|false)"
_STEP = r"/(?:\.{0,2}[^/:.\x00-\x1f][^/:\x00-\x1f]*|\.{3,}[^/:\x00-\x1f]*)"
EXPANDER = "random|most-pods|least-waste|least-nodes|price|priority|cheapest-mix"

Free = dict[str, Any]
"""A part of an object that is handed on as it is."""
Replicas = Annotated[int, Meta(ge=0, le=1000)]
Name = Annotated[str, _is(_SUBDOMAIN, "a name such as bayplan-cloud", 253)]
NoName = Annotated[str, _is(f"(?:{_SUBDOMAIN})?", "a name such as bayplan-cloud, or nothing", 253)]
Key = Annotated[str, _is(rf"(?:{_SUBDOMAIN}/)?{_WORD}", "a key such as example.com/pool", 317)]
LabelValue = Annotated[str, _is(f"(?:{_WORD})?", "a label's value: 63 letters, digits and -_.")]
Labels = dict[Key, LabelValue]
Annotations = dict[Key, str]
Image = Annotated[
    str,
    _is(
        rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(?:{_DIGEST})?",
        "an image such as registry.example.com/bayplan:1.0",
        500,
    ),
]
Address = Annotated[
    str,
    _is(r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}|\[[0-9a-fA-F:.]+\]", "an address such as 0.0.0.0 or [::]"),
]
Interval = Annotated[
    str,
    # As Prometheus' operator takes it: units from the largest down, at least one of them.
    _is(rf"{_N}h(?:{_N}m)?(?:{_N}s)?|{_N}m(?:{_N}s)?|{_N}s", "a time such as 30s", 20),
]
Gates = Annotated[
    str, _is(rf"(?:{_GATE}(?:,{_GATE})*)?", f"NAME=true or NAME=false, of {', '.join(DEFAULTS)}")
]
Expanders = Annotated[
    str, _is(rf"(?:{EXPANDER})(?:,(?:{EXPANDER}))*", f"some of {EXPANDER.replace('|', ', ')}")
]
Folder = Annotated[str, _is(rf"(?:{_STEP})+/?", "a path such as /var/lib/bayplan", 4096)]
Argument = Annotated[str, Meta(min_length=1)]
Amount = (
    Annotated[
        str,
        _is(
            r"\+?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?",
            "an amount such as 250m or 1Gi",
            100,
        ),
    ]
    | Annotated[int, Meta(ge=0)]
    | Annotated[float, Meta(ge=0)]
)
Resource = Annotated[
    str,
    _is(
        rf"cpu|memory|ephemeral-storage|hugepages-[0-9]+[KMG]i|{_PREFIXED}",
        "a resource such as cpu, memory or example.com/device",
    ),
]
Amounts = dict[Resource, Amount]


class Strict(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=False):
    """What has no fields but its own."""


class Handed(Strict):
    """What is handed on to Kubernetes as it is, and merged by Helm as any map is."""


def is_section(held: object) -> TypeGuard[Strict]:
    """Whether it is a part of the values that has values of its own."""
    return isinstance(held, Strict) and not isinstance(held, Handed)


class Resources(Handed):
    """What a container asks for, and may have."""

    requests: Amounts | UnsetType = UNSET
    """What is kept for it, by resource."""
    limits: Amounts | UnsetType = UNSET
    """What it gets at most, by resource."""


class Affinity(Handed):
    """Which nodes pods need or like, and whose company."""

    node_affinity: Free | UnsetType = UNSET
    """Nodes, as a pod says it."""
    pod_affinity: Free | UnsetType = UNSET
    """Pods to be near, as a pod says it."""
    pod_anti_affinity: Free | UnsetType = UNSET
    """Pods to be away from, as a pod says it."""


class SecretName(Handed):
    """A Secret of the same namespace."""

    name: Name
    """Its name."""


class Toleration(Handed, kw_only=True):
    """A taint that does not keep pods away."""

    key: Annotated[str, _is(rf"(?:(?:{_SUBDOMAIN}/)?{_WORD})?", "a taint's key")] | UnsetType = (
        UNSET
    )
    """Whose taint; any, with operator Exists and without a key."""
    operator: Literal["Exists", "Equal"] | UnsetType = UNSET
    """Whether the value counts; Equal if it is not said."""
    value: LabelValue | UnsetType = UNSET
    """The taint's value, with operator Equal."""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] | UnsetType = UNSET
    """The taint's effect; any if it is not said."""
    toleration_seconds: int | UnsetType = UNSET
    """For how long, with effect NoExecute; for ever if it is not said."""
