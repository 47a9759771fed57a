"""The REST strategy of a kind, with defaults that do nothing, and helpers for defaulting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.validation.names import NameRule, subdomain
from bayplan.kube import quantity

Now = Callable[[], str]
"""Returns the current time."""


def _nothing(obj: JsonObject) -> None:
    """Do nothing."""


def _no_change(new: JsonObject, old: JsonObject) -> None:
    """Do nothing."""


def _no_status(new: JsonObject, old: JsonObject, now: Now) -> None:
    """Do nothing."""


def _no_deletion(obj: JsonObject, now: str) -> None:
    """Do nothing."""


def _fine(_: JsonObject) -> list[FieldCause]:
    return []


def _fine_change(_new: JsonObject, _old: JsonObject) -> list[FieldCause]:
    return []


def _no_warnings(_new: JsonObject, _old: JsonObject | None) -> list[str]:
    return []


@dataclass(frozen=True, slots=True)
class SubresourceStrategy:
    """The strategy of a subresource that writes a part of the object."""

    merge: Callable[[JsonObject, JsonObject], JsonObject]
    """Returns the old object with that part of the wanted one (wanted, old)."""
    validate: Callable[[JsonObject, JsonObject], list[FieldCause]]
    """Returns the problems of the change (new, old)."""


@dataclass(frozen=True, slots=True)
class RestStrategy:
    """How one kind differs from a plain stored object."""

    name_rule: NameRule = subdomain
    default: Callable[[JsonObject], None] = _nothing
    """Sets defaults."""
    prepare_create: Callable[[JsonObject], None] = _nothing
    """Sets the server-owned fields of a new object."""
    prepare_update: Callable[[JsonObject, JsonObject], None] = _no_change
    """Sets the server-owned fields of a changed object (new, old)."""
    prepare_status: Callable[[JsonObject, JsonObject, Now], None] = _no_status
    """Sets the server-owned fields when the status is written (new, old, now)."""
    prepare_delete: Callable[[JsonObject, str], None] = _no_deletion
    """Sets the server-owned fields of an object that begins to terminate."""
    validate: Callable[[JsonObject], list[FieldCause]] = _fine
    validate_new: Callable[[JsonObject], list[FieldCause]] = _fine
    """Returns the problems that only a new object can have."""
    validate_update: Callable[[JsonObject, JsonObject], list[FieldCause]] = _fine_change
    validate_status: Callable[[JsonObject, JsonObject], list[FieldCause]] = _fine_change
    """Returns the problems of a change of the status (new, old)."""
    parts: dict[str, SubresourceStrategy] = field(default_factory=dict)
    """Strategies of subresources other than status."""
    warnings: Callable[[JsonObject, JsonObject | None], list[str]] = _no_warnings
    """Returns warnings about a new object (old is None) or a change (new, old)."""
    metadata_last: bool = False
    """Whether metadata is validated only if there are no other problems."""
    keeps_status: bool = False
    """Whether a client may set the status of a new object."""
    create_on_update: bool = False
    """Whether a PUT may create."""
    orphans: bool = False
    """Whether a delete without a propagation policy orphans dependents."""
    returns_deleted: bool = False
    """Whether a delete responds with the object instead of a Status."""


def fill(obj: JsonObject, **defaults: JsonValue) -> None:
    """Set fields that are absent."""
    for name, value in defaults.items():
        if obj.get(name) is None:
            obj[name] = value


def child(obj: JsonObject, name: str) -> JsonObject:
    """Return a nested object, created if it is absent."""
    found: JsonObject | None = obj.get(name)
    if found is None:
        found = obj[name] = {}
    return found


def items(obj: JsonObject, name: str) -> list[JsonObject]:
    """Return a nested list of objects; empty if it is absent."""
    return obj.get(name) or []


def round_amounts(amounts: JsonObject | None) -> None:
    """Round amounts of resources up to thousandths."""
    if amounts is None:
        return
    for name, amount in amounts.items():
        if amount[-1:] in ("n", "u") or "e-" in amount:
            amounts[name] = quantity.format_amount(Fraction(quantity.milli_value(amount), 1000))
