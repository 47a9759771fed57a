"""Schema validation of an object, before anything else reads it."""

from __future__ import annotations

from functools import lru_cache

from bayplan.embedded.apiserver.crds.definitions import scale_problems
from bayplan.embedded.apiserver.crds.pruning import add_defaults, prune
from bayplan.embedded.apiserver.crds.validation import problems, problems_at
from bayplan.embedded.apiserver.errors import FieldCause, StatusError, bad_request, invalid
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, decode, encode, in_go
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.apiserver.kinds.model import ServedKind
from bayplan.embedded.apiserver.request import Call
from bayplan.embedded.apiserver.schema import unmarshal
from bayplan.embedded.apiserver.schema.typecheck import TypeCheck, TypeMismatch, check_object
from bayplan.embedded.apiserver.schema.types import ObjectType, package_of, require_type, root_type
from bayplan.embedded.apiserver.validation.causes import bad_value

_SCHEME = "pkg/api/legacyscheme/scheme.go:30"
_TOO_DEEP = "exceeded max depth"
_FROM_TEMPLATES = "core.Pod"
_MAX_CACHED_BYTES = 16 * 1024
"""Limit of a spec whose validation is cached, in bytes."""


def conform(
    call: Call,
    obj: JsonObject,
    *,
    whole: bool = True,
    body: bytes = b"",
    known: JsonObject | None = None,
) -> None:
    """Validate an object against its type, and drop unknown fields; warn or refuse accordingly.

    An apply configuration (`whole` is False) gets no defaults: they would count as applied fields.
    `body` is the request body, if that was this object; `known` is the object before, which is
    valid.
    """
    type_ = root_type(call.kind.group, call.kind.kind) if call.kind.custom is None else None
    if type_ is not None:
        conform_to(call, obj, type_, TypeCheck([], whole, known), body)
    else:
        repeated = repeated_fields(obj, body) if call.field_validation != "Ignore" else []
        unknown = conform_metadata(call, obj, whole=whole)
        unknown += _conform_custom(call, obj, whole=whole)
        complain(call, obj, repeated + [f'unknown field "{name}"' for name in unknown])


def kind_problem(obj: JsonObject, kind: ServedKind, catalog: Catalog) -> str:
    """Return what is wrong with an object's apiVersion and kind; absent ones are accepted."""
    named = obj.get("kind") or kind.kind
    api_version = obj.get("apiVersion") or kind.api_version
    if (named, api_version) == (kind.kind, kind.api_version):
        return ""
    group, _, version = api_version.rpartition("/")
    singles = (named, named.removesuffix("List"))
    known = any(catalog.of_object(api_version, each) for each in singles)
    if known and (named, group) == (kind.kind, kind.group):
        message = f"the API version in the data ({api_version}) does not match"
        return f"{message} the expected API version ({kind.api_version})"
    what = f'{named} in version "{version}" cannot be handled as a {kind.kind}'
    return f"{what}: {_no_conversion(named, api_version, kind, known=known)}"


def _no_conversion(named: str, api_version: str, kind: ServedKind, *, known: bool) -> str:
    if not known:
        return f'no kind "{named}" is registered for version "{api_version}" in scheme "{_SCHEME}"'
    version, inner = api_version.rpartition("/")[2], f"{package_of(kind.group)}.{kind.kind}"
    return f"converting ({version}.{named}) to ({inner}): unknown conversion"


def check_patched_kind(call: Call, obj: JsonObject, catalog: Catalog) -> None:
    """Refuse a patch that changes or removes the object's kind."""
    if call.strategic is None and not obj.get("apiVersion"):
        raise nameless(call)
    for name in ("apiVersion", "kind"):
        if not isinstance(obj.get(name), str | None):
            message = (
                f"json: cannot unmarshal {unmarshal.described(obj[name])} into Go struct field"
            )
            raise undecodable(call, obj, f"{message} .{name} of type string")
    problem = kind_problem(obj, call.kind, catalog) if call.strategic is None else ""
    if problem:
        raise undecodable(call, obj, problem.partition(f" as a {call.kind.kind}: ")[2] or problem)


def nameless(call: Call) -> StatusError:
    """Return 400: the object has no name."""
    return bad_request(
        f"the name of the object ({call.name} based on URL) was undeterminable: "
        "name must be provided"
    )


def _conform_custom(call: Call, obj: JsonObject, *, whole: bool) -> list[str]:
    """Drop the unknown fields of a custom resource, and set its defaults."""
    schema = call.kind.custom.schema if call.kind.custom is not None else None
    unknown: list[str] = []
    if schema is None:
        return unknown
    try:
        prune(obj, schema, unknown)
        if whole:
            add_defaults(obj, schema)
    except RecursionError as problem:
        raise undecodable(call, obj, _TOO_DEEP) from problem
    return unknown


def custom_problems(call: Call, obj: JsonObject) -> list[FieldCause]:
    """Return the problems of a custom resource by its schema."""
    custom = call.kind.custom
    if custom is None:
        return []
    found = [] if custom.schema is None else _schema_problems(call, obj, custom.schema)
    return found + (scale_problems(obj, custom.scale) if custom.scale is not None else [])


def _schema_problems(call: Call, obj: JsonObject, schema: JsonObject) -> list[FieldCause]:
    if call.subresource != "status":
        return problems(obj, schema)
    inner = (schema.get("properties") or {}).get("status")
    return problems_at("status", obj["status"], inner) if inner and "status" in obj else []


def conform_metadata(call: Call, obj: JsonObject, *, whole: bool = True) -> list[str]:
    """Validate only the metadata."""
    meta = obj.get("metadata")
    if meta is None:
        obj["metadata"] = {}
        return []
    report = TypeCheck([], whole)
    _checked(call, meta, require_type("meta.ObjectMeta"), report)
    return [f"metadata.{name}" for name in report.unknown]


def conform_to(
    call: Call, obj: JsonObject, type_: ObjectType, report: TypeCheck, body: bytes = b""
) -> None:
    """Validate an object against a type."""
    strict = call.field_validation != "Ignore"
    repeats = strict and may_repeat(obj, body)
    if type_.name == _FROM_TEMPLATES and report.whole and report.known is None:
        report = report._replace(known=_known_spec(obj))
    _checked(call, obj, type_, report, body)
    if not strict or not (report.unknown or repeats or call.repeated):
        return
    if body:
        complain(call, obj, unmarshal.strict_problems(unmarshal.read_exactly(body), type_))
    else:
        complain(call, obj, [f'unknown field "{name}"' for name in report.unknown])


def _known_spec(pod: JsonObject) -> JsonObject | None:
    """Return a pod's spec in validated form, if it is in the cache or valid."""
    spec = pod.get("spec")
    if type(spec) is not dict:
        return None
    written = encode(spec)
    validated = _validated_spec(written) if len(written) <= _MAX_CACHED_BYTES else None
    if validated is None:
        return None
    pod["spec"] = decode(validated)
    return {"spec": pod["spec"]}


@lru_cache(256)
def _validated_spec(written: bytes) -> bytes | None:
    """Return a spec in validated form; None if it has problems.

    Pods of one template differ only by name, and their spec is validated once.
    """
    spec, report = decode(written), TypeCheck([])
    try:
        check_object(spec, require_type("core.PodSpec"), report)
    except (TypeMismatch, RecursionError):
        return None
    return None if report.unknown else encode(spec)


def may_repeat(obj: JsonValue, body: bytes) -> bool:
    """Return whether the body may have duplicate fields: fewer were decoded than it has."""
    return bool(body) and body.count(b'":') != encode(obj).count(b'":')


def repeated_fields(obj: JsonValue, body: bytes) -> list[str]:
    """Return the duplicate fields of a body."""
    if not may_repeat(obj, body):
        return []
    return unmarshal.strict_problems(unmarshal.read_exactly(body), None)


def _checked(
    call: Call, obj: JsonObject, type_: ObjectType, report: TypeCheck, body: bytes = b""
) -> None:
    try:
        check_object(obj, type_, report, known=report.known)
    except TypeMismatch as found:
        if call.strategic is not None:
            message = unmarshal.restored_problem(obj, type_)
        else:
            message = unmarshal.problem(unmarshal.read_exactly(body) if body else obj, type_)
        raise undecodable(call, obj, message or str(found)) from found
    except RecursionError as problem:
        raise undecodable(call, obj, _TOO_DEEP) from problem


def undecodable(call: Call, obj: JsonObject, detail: str) -> StatusError:
    """Return 400, or 422 for a patch: the value cannot be decoded as the kind."""
    kind = call.kind
    if call.patching:
        return invalid("", "", "", [bad_value("patch", _patched(call, obj), detail)])
    what = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
    return bad_request(f"{what}: {detail}")


def _patched(call: Call, obj: JsonObject) -> str:
    if call.strategic is not None:
        return in_go(call.strategic)
    try:
        return encode(obj).decode()
    except RecursionError:
        return "{}"


def complain(call: Call, obj: JsonObject, complaints: list[str]) -> None:
    """Refuse unknown and duplicate fields, or warn about them, by the field validation level."""
    complaints = [*call.repeated, *complaints]
    if not complaints or call.field_validation == "Ignore":
        return
    if call.field_validation == "Strict":
        raise undecodable(call, obj, "strict decoding error: " + ", ".join(complaints))
    for problem in complaints:
        call.warn(problem)
