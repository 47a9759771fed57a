"""Before anything else looks at an object, it must have its kind's shape."""

from __future__ import annotations

from bayplan.embedded.apiserver.crds.pruning import add_defaults, prune
from bayplan.embedded.apiserver.crds.validation import problems
from bayplan.embedded.apiserver.errors import ApiError, Cause, bad_request, invalid
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.request import Call
from bayplan.embedded.apiserver.schema.checking import Mismatch, Report, check_object
from bayplan.embedded.apiserver.schema.roots import root_type
from bayplan.embedded.apiserver.schema.types import ObjectType, require_type
from bayplan.embedded.apiserver.validation.causes import bad_value


def conform(call: Call, obj: JsonObject, *, whole: bool = True) -> None:
    """Check an object's shape and take out what does not belong; complain as the client wishes.

    What is not a whole object, but what a manager wants of one, is given no defaults: they would
    look like its wishes.
    """
    type_ = root_type(call.kind.group, call.kind.kind) if call.kind.custom is None else None
    if type_ is not None:
        conform_to(call, obj, type_, whole=whole)
    else:
        conform_metadata(call, obj, whole=whole)
        _conform_custom(call, obj, whole=whole)


def _conform_custom(call: Call, obj: JsonObject, *, whole: bool) -> None:
    """Drop what a custom resource's schema does not know, and add what it defaults."""
    schema = call.kind.custom.schema if call.kind.custom is not None else None
    if schema is None:
        return
    unknown: list[str] = []
    try:
        prune(obj, schema, unknown)
        if whole:
            add_defaults(obj, schema)
    except RecursionError as problem:
        raise bad_request("the object is nested too deeply") from problem
    _complain(call, unknown)


def custom_problems(call: Call, obj: JsonObject) -> list[Cause]:
    """What a custom resource's schema says is wrong with it."""
    schema = call.kind.custom.schema if call.kind.custom is not None else None
    return problems(obj, schema) if schema is not None else []


def conform_metadata(call: Call, obj: JsonObject, *, whole: bool = True) -> None:
    """Check only the metadata: the rest has a schema of its own, or none."""
    meta = obj.get("metadata")
    if meta is None:
        obj["metadata"] = {}
        return
    report = Report([], whole)
    _checked(call, meta, require_type("meta.ObjectMeta"), report)
    _complain(call, [f"metadata.{name}" for name in report.unknown])


def conform_to(call: Call, obj: JsonObject, type_: ObjectType, *, whole: bool = True) -> None:
    """Check an object against a type."""
    report = Report([], whole)
    _checked(call, obj, type_, report)
    _complain(call, report.unknown)


def _checked(call: Call, obj: JsonObject, type_: ObjectType, report: Report) -> None:
    kind = call.kind
    try:
        check_object(obj, type_, report)
    except Mismatch as problem:
        message = (
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {problem}'
        )
        raise bad_request(message) from problem
    except RecursionError as problem:
        raise bad_request("the object is nested too deeply") from problem


def _complain(call: Call, unknown: list[str]) -> None:
    if not unknown or call.field_validation == "Ignore":
        return
    complaints = [f'unknown field "{name}"' for name in unknown]
    if call.field_validation == "Strict":
        raise strict_error(call, complaints)
    for problem in complaints[:20]:
        call.warn(problem)


def strict_error(call: Call, complaints: list[str]) -> ApiError:
    """Fields that a strict client does not want to be dropped."""
    kind, message = call.kind, "strict decoding error: " + ", ".join(complaints)
    if call.patching:
        return invalid("", "", "", [bad_value("patch", call.name, message)])
    what = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
    return bad_request(f"{what}: {message}")
