"""AdmissionReview: the request of an API server, the response, and amounts in them.

A request is decoded only as far as it must be: its object stays raw until a rule reads the part of
it that it is about. So a field that is not used here can be anything.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeVar

import msgspec

from bayplan.base.values import printable, shorten
from bayplan.kube.meta import Quantity, Struct
from bayplan.kube.quantity import QuantityError, parse
from bayplan.kube.resources import PODS, is_extended
from bayplan.queues.resources import NOTHING, AmountError, Resources, read_amounts

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_NOTHING = msgspec.Raw(b"null")
_LONGEST = 1000
"""The maximum length of a message, which is shown in events and on terminals."""

StructT = TypeVar("StructT", bound=Struct)
Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
PatchOperation = Mapping[str, object]


class ReviewError(ValueError):
    """A review or object that cannot be read; the message has the reason."""


class GroupResource(Struct):
    """The kind of object of a request."""

    group: str = ""
    version: str = ""
    resource: str = ""


class ReviewRequest(Struct, gc=True):
    """The request of a review."""

    uid: str
    operation: Operation
    resource: GroupResource = msgspec.field(default_factory=GroupResource)
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    object: msgspec.Raw = _NOTHING
    old_object: msgspec.Raw = _NOTHING


class _Review(Struct):
    api_version: str = ""
    kind: str = ""
    request: ReviewRequest | None = None


@dataclass(frozen=True, slots=True)
class FieldFault:
    """A field that is wrong, and why."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


@dataclass(frozen=True, slots=True)
class ReviewResponse:
    """The response to a request: allowed unless there is a fault."""

    faults: tuple[FieldFault, ...] = ()
    patch: tuple[PatchOperation, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether the object is admitted."""
        return not self.faults


ADMITTED = ReviewResponse()
_read_review = msgspec.json.Decoder(_Review).decode
_encode = msgspec.json.Encoder().encode


def read_review(body: bytes) -> ReviewRequest:
    """Read the request of a review; ReviewError if it cannot be read."""
    try:
        review = _read_review(body)
    except _UNREADABLE as error:
        raise ReviewError(f"not an {KIND}: {_text_of(error)}") from None
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        named = f"{shorten(review.kind)} of {shorten(review.api_version)}"
        raise ReviewError(f"not an {KIND} of {API_VERSION} but a {named}")
    if review.request is None:
        raise ReviewError(f"an {KIND} without a request")
    return review.request


def read_part(decoder: msgspec.json.Decoder[StructT], raw: msgspec.Raw) -> StructT:
    """Decode the part of an object that a rule reads; ReviewError if it is invalid."""
    try:
        return decoder.decode(raw)
    except _UNREADABLE as error:
        raise ReviewError(f"the object cannot be read: {_text_of(error)}") from None


def encode_review(request: ReviewRequest, response: ReviewResponse) -> bytes:
    """Return the review with the response to a request."""
    fields: dict[str, object] = {"uid": request.uid, "allowed": response.allowed}
    if response.faults:
        fields["status"] = _status(request, response.faults)
    elif response.patch:
        fields["patchType"] = "JSONPatch"
        fields["patch"] = base64.b64encode(_encode(response.patch)).decode()
    if response.warnings:
        fields["warnings"] = [_clipped(text) for text in response.warnings]
    return _encode({"apiVersion": API_VERSION, "kind": KIND, "response": fields})


def _status(request: ReviewRequest, faults: Sequence[FieldFault]) -> dict[str, object]:
    gone = request.operation == "DELETE"
    causes = [{"field": fault.field, "message": fault.message} for fault in faults if fault.field]
    return {
        "status": "Failure",
        "code": 403 if gone else 422,
        "reason": "Forbidden" if gone else "Invalid",
        "message": _clipped("; ".join(map(str, faults))),
        "details": {"causes": causes},
    }


def _text_of(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else _clipped(str(error))


def _clipped(text: str) -> str:
    return printable(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")


def amount_faults(place: str, written: Mapping[str, Quantity]) -> Iterator[FieldFault]:
    """Yield faults of the quantities in a map."""
    for name, quantity in written.items():
        try:
            read_amounts({name: quantity})
        except AmountError as error:
            yield FieldFault(place, str(error))
            continue
        whole = name == PODS or is_extended(name)
        if whole and parse(quantity).denominator != 1:
            yield FieldFault(place, f"{name}: {quantity!r} is not a whole number")


def uncounted(place: str, written: Mapping[str, Quantity]) -> Iterator[str]:
    """Yield warnings about names that are not resources of nodes, and are ignored."""
    for name in written.keys() - read_amounts(written).amounts.keys():
        yield f"{place}: {name} is no resource that a node can have, and does not count"


def above(
    these: Mapping[str, Quantity], those: Mapping[str, Quantity]
) -> Iterator[tuple[str, Quantity, Quantity]]:
    """Yield the resources in both maps whose first amount is larger, with both amounts."""
    for name, quantity in these.items():
        high, low = _exact(quantity), _exact(those.get(name, ""))
        if high is not None and low is not None and high > low:
            yield name, quantity, those[name]


def _exact(quantity: Quantity) -> Fraction | None:
    try:
        return parse(quantity)
    except QuantityError:
        return None


def readable(written: Mapping[str, Quantity]) -> Resources:
    """Return the amounts of a map; nothing if it is invalid."""
    try:
        return read_amounts(written)
    except AmountError:
        return NOTHING
