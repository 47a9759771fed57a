"""The types of single values: a pattern, and a description for error messages.

The same patterns are in values.schema.json, which Helm evaluates in Go, so they have no look-ahead.
They end in `\\Z` here, since Python's `$` accepts a trailing newline, and in `$` there.
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
EXPANDER = "random|most-pods|least-waste|least-nodes|price|priority|grpc|cheapest-mix"

Free = dict[str, Any]
"""A part of an object that is passed through without validation."""
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


class StrictStruct(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=False):
    """A mapping that forbids unknown fields."""


class PassedThrough(StrictStruct):
    """A mapping that is passed through to Kubernetes, and merged by Helm like any map."""


def is_section(held: object) -> TypeGuard[StrictStruct]:
    """Return whether it is a section of the values, with values of its own."""
    return isinstance(held, StrictStruct) and not isinstance(held, PassedThrough)


class ContainerResources(PassedThrough):
    """Resource requests and limits of a container."""

    requests: Amounts | UnsetType = UNSET
    """Requests by resource."""
    limits: Amounts | UnsetType = UNSET
    """Limits by resource."""


class AffinityValue(PassedThrough):
    """Affinity of pods."""

    node_affinity: Free | UnsetType = UNSET
    """Node affinity, as in a pod's spec."""
    pod_affinity: Free | UnsetType = UNSET
    """Pod affinity, as in a pod's spec."""
    pod_anti_affinity: Free | UnsetType = UNSET
    """Pod anti-affinity, as in a pod's spec."""


class PullSecret(PassedThrough):
    """A Secret of the same namespace."""

    name: Name
    """Its name."""


class TolerationValue(PassedThrough, kw_only=True):
    """A toleration of a taint."""

    key: Annotated[str, _is(rf"(?:(?:{_SUBDOMAIN}/)?{_WORD})?", "a taint's key")] | UnsetType = (
        UNSET
    )
    """The taint's key; any key if empty, with operator Exists."""
    operator: Literal["Exists", "Equal"] | UnsetType = UNSET
    """Whether the value is compared; Equal by default."""
    value: LabelValue | UnsetType = UNSET
    """The taint's value, with operator Equal."""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] | UnsetType = UNSET
    """The taint's effect; any by default."""
    toleration_seconds: int | UnsetType = UNSET
    """For how long, with effect NoExecute; unlimited by default."""
