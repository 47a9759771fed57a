"""The small interface by which a kind says what is special about it; the default says nothing.

And the helpers by which strategies fill in what a client left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.validation.names import NameRule, subdomain
from bayplan.kube import quantity

Now = Callable[[], str]
"""Says what time it is."""


def _nothing(obj: JsonObject) -> None:
    """Nothing to do."""


def _no_change(new: JsonObject, old: JsonObject) -> None:
    """Nothing to do."""


def _no_status(new: JsonObject, old: JsonObject, now: Now) -> None:
    """Nothing to do."""


def _no_farewell(obj: JsonObject, now: str) -> None:
    """Nothing to do."""


def _fine(_: JsonObject) -> list[Cause]:
    return []


def _fine_change(_new: JsonObject, _old: JsonObject) -> list[Cause]:
    return []


def _no_warnings(_new: JsonObject, _old: JsonObject | None) -> list[str]:
    return []


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an object that is written by itself, through a subresource."""

    merge: Callable[[JsonObject, JsonObject], JsonObject]
    """The object with that part as wanted, and all else as it was (wanted, old)."""
    validate: Callable[[JsonObject, JsonObject], list[Cause]]
    """What is wrong with the change (new, old)."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """How one kind differs from a plain stored object."""

    name_rule: NameRule = subdomain
    default: Callable[[JsonObject], None] = _nothing
    """Fill in what the client left out."""
    prepare_create: Callable[[JsonObject], None] = _nothing
    """Set what only the server may set on a new object."""
    prepare_update: Callable[[JsonObject, JsonObject], None] = _no_change
    """Set what only the server may set on a changed object (new, old)."""
    prepare_status: Callable[[JsonObject, JsonObject, Now], None] = _no_status
    """Set what only the server may set when a status is written (new, old, what time it is)."""
    prepare_delete: Callable[[JsonObject, str], None] = _no_farewell
    """Set what only the server may set on an object that is to go from now on."""
    validate: Callable[[JsonObject], list[Cause]] = _fine
    validate_new: Callable[[JsonObject], list[Cause]] = _fine
    """What is wrong with an object only as long as it is new."""
    validate_update: Callable[[JsonObject, JsonObject], list[Cause]] = _fine_change
    validate_status: Callable[[JsonObject, JsonObject], list[Cause]] = _fine_change
    """What is wrong with a change of the status (new, old)."""
    parts: dict[str, Part] = field(default_factory=dict)
    """What is written through subresources of its own, beside the status."""
    warnings: Callable[[JsonObject, JsonObject | None], list[str]] = _no_warnings
    """What the author of a new object (old is None) or of a change should know (new, old)."""
    metadata_last: bool = False
    """Whether metadata is looked at only when nothing else is wrong."""
    keeps_status: bool = False
    """Whether the status of a newly created object is the client's."""
    create_on_update: bool = False
    """Whether a PUT may create."""
    orphans: bool = False
    """Whether a delete that does not say otherwise leaves dependents alone."""
    returns_deleted: bool = False
    """Whether a delete answers with the object instead of a Status."""


def fill(obj: JsonObject, **defaults: JsonValue) -> None:
    """Set fields that are absent."""
    for name, value in defaults.items():
        if obj.get(name) is None:
            obj[name] = value


def child(obj: JsonObject, name: str) -> JsonObject:
    """A nested object, made if it is absent."""
    found: JsonObject | None = obj.get(name)
    if found is None:
        found = obj[name] = {}
    return found


def items(obj: JsonObject, name: str) -> list[JsonObject]:
    """A nested list of objects; empty if it is absent."""
    return obj.get(name) or []


def round_amounts(amounts: JsonObject | None) -> None:
    """Amounts of resources are counted in thousandths; what is finer is rounded up."""
    if amounts is None:
        return
    for name, amount in amounts.items():
        if amount[-1:] in ("n", "u") or "e-" in amount:
            amounts[name] = quantity.format_amount(Fraction(quantity.milli_value(amount), 1000))
