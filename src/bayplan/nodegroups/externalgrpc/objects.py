"""Nodes and pods as Kubernetes' protobuf, which is how they cross the wire.

Both ways go through the JSON that the messages stand for, so that what comes from a stranger is
checked like any other object. Only quantities differ: on the wire each is a message of its own.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import DecodeError, Message

from bayplan.base.values import JsonValue
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.nodegroups.errors import InvalidRequestError
from bayplan.nodegroups.externalgrpc import kube_pb2 as kube

_Object = TypeVar("_Object", bound=KubeObject)
_QUANTITIES = frozenset({"capacity", "allocatable", "requests", "limits", "overhead"})


def node_bytes(node: Node) -> bytes:
    """A node as its wire has it."""
    return _written(node, kube.Node())


def pod_bytes(pod: Pod) -> bytes:
    """What a pod asks for, as its wire has it."""
    return _written(pod, kube.Pod())


def read_node(data: bytes) -> Node:
    """The node that bytes stand for; InvalidRequestError if they are none."""
    return _read(data, kube.Node(), Node)


def read_pod(data: bytes) -> Pod:
    """The pod that bytes stand for; InvalidRequestError if they are none."""
    return _read(data, kube.Pod(), Pod)


def _written(obj: KubeObject, message: Message) -> bytes:
    ParseDict(_wrapped(msgspec.to_builtins(obj)), message, ignore_unknown_fields=True)
    return message.SerializeToString(deterministic=True)


def _read(data: bytes, message: Message, kind: type[_Object]) -> _Object:
    name = kind.__name__
    try:
        message.ParseFromString(data)
        plain = _unwrapped(MessageToDict(message, preserving_proto_field_name=True))
        return msgspec.convert({"apiVersion": "v1", "kind": name, **plain}, kind)
    except (DecodeError, msgspec.ValidationError) as problem:
        raise InvalidRequestError(f"cannot be read as a {name}: {problem}") from problem


def _wrapped(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: _wrapped_field(name, item) for name, item in value.items()}


def _wrapped_field(name: str, item: JsonValue) -> JsonValue:
    if isinstance(item, list):
        return [_wrapped(one) if isinstance(one, dict) else one for one in item]
    if not isinstance(item, dict):
        return item
    if name in _QUANTITIES:
        return {key: {"string": str(amount)} for key, amount in item.items()}
    return _wrapped(item)


def _unwrapped(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: _unwrapped_field(name, item) for name, item in value.items()}


def _unwrapped_field(name: str, item: JsonValue) -> JsonValue:
    if isinstance(item, list):
        return [_unwrapped(one) if isinstance(one, dict) else one for one in item]
    if not isinstance(item, dict):
        return item
    if name in _QUANTITIES:
        return {k: v.get("string", "0") for k, v in item.items() if isinstance(v, dict)}
    return _unwrapped(item)
