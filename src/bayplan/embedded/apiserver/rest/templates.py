"""Objects made by the thousand from one template come in the same words, and are checked once.

A controller that leaves the name to the server sends the same bytes for every object it makes. What
they say, once checked against the kind's shape, is kept in its checked form: the next time it only
has to be read. Whatever calls for a complaint is looked at anew each time.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from bayplan.embedded.apiserver.jsontypes import JsonObject, decode, encode
from bayplan.embedded.apiserver.request import Call

MOST = 128
LARGEST = 16 * 1024
"""Bytes of a body that is worth keeping."""


class Wording(NamedTuple):
    """A new object as a client sent it, and how strictly it is to be read."""

    api_version: str
    kind: str
    validation: str
    body: bytes


class Templates:
    """Wordings that have been seen, and the objects that they stand for, as JSON."""

    def __init__(self) -> None:
        self._checked: OrderedDict[Wording, bytes] = OrderedDict()

    def find(self, wording: Wording | None) -> JsonObject | None:
        """The object that a wording stands for, if it has been seen before."""
        known = self._checked.get(wording) if wording is not None else None
        return None if known is None else decode(known)

    def keep(self, wording: Wording | None, call: Call, obj: JsonObject) -> None:
        """Remember a checked object, if there was nothing to complain of."""
        if wording is None or call.warnings:
            return
        self._checked[wording] = encode(obj)
        if len(self._checked) > MOST:
            self._checked.popitem(last=False)


def wording_of(call: Call, media_type: str, body: bytes) -> Wording | None:
    """A body that may come again; None for one that is not likely to."""
    kind = call.kind
    if media_type != "application/json" or len(body) > LARGEST or kind.custom is not None:
        return None
    if b'"generateName"' not in body or call.field_validation == "Ignore":
        return None
    return Wording(kind.api_version, kind.kind, call.field_validation, body)
