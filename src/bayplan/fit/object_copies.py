"""Private copies: what the caller does later with an object that was handed in does not matter.

Encoding and decoding also holds every field against its type, so that an object that was not read
from the wire is checked like one that was.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from bayplan.kube.codec import ObjectError, identify
from bayplan.kube.meta import KubeObject

T = TypeVar("T", bound=KubeObject)
_encode = msgspec.msgpack.Encoder().encode
_decoders: dict[type, msgspec.msgpack.Decoder[Any]] = {}
PROBLEMS = (msgspec.MsgspecError, ValueError, TypeError, OverflowError, AttributeError)
"""What code that reads a hostile object may raise."""


def private_copy(obj: T) -> T:
    """A copy of the caller's object; ObjectError if a field is not what it must be."""
    kind = type(obj)
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.msgpack.Decoder(kind)
    try:
        copy: T = decoder.decode(_encode(obj))
    except PROBLEMS as error:
        raise refused(obj, "", error) from error
    return copy


def refused(obj: KubeObject, path: str, error: Exception) -> ObjectError:
    """Return the error that names the object that cannot be used, and why."""
    if isinstance(error, ObjectError):
        return error
    meta = obj.metadata  # of which nothing need be what it should
    name = identify(type(obj).__name__, str(meta.namespace or ""), str(meta.name or ""))
    return ObjectError(name, path, None, str(error))
