"""Objects from and to their wire form.

Decoding is typed and fast. Only where it fails is the object read a second time into plain values:
to drop explicit nulls, which Kubernetes takes as absent, and, if that was not it, to name the field
and the value in the error.
"""

from bayplan.kube.codec.defaults import DEFAULT_NAMESPACE
from bayplan.kube.codec.kinds import EVENTS, KINDS, Kind, find_kind
from bayplan.kube.codec.objects import (
    Head,
    Wire,
    decode_as,
    decode_event,
    decode_object,
    encode,
    read_head,
)
from bayplan.kube.codec.problems import ObjectError, identify

__all__ = [
    "DEFAULT_NAMESPACE",
    "EVENTS",
    "KINDS",
    "Head",
    "Kind",
    "ObjectError",
    "Wire",
    "decode_as",
    "decode_event",
    "decode_object",
    "encode",
    "find_kind",
    "identify",
    "read_head",
]
