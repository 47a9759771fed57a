"""Before anything else looks at an object, it must have its kind's shape."""

from __future__ import annotations

from functools import lru_cache

from bayplan.embedded.apiserver.crds.definitions import scale_problems
from bayplan.embedded.apiserver.crds.pruning import add_defaults, prune
from bayplan.embedded.apiserver.crds.validation import problems, problems_at
from bayplan.embedded.apiserver.errors import ApiError, Cause, bad_request, invalid
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, decode, encode, in_go
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.request import Call
from bayplan.embedded.apiserver.schema import unmarshal
from bayplan.embedded.apiserver.schema.checking import Mismatch, Report, check_object
from bayplan.embedded.apiserver.schema.types import ObjectType, package_of, require_type, root_type
from bayplan.embedded.apiserver.validation.causes import bad_value

_SCHEME = "pkg/api/legacyscheme/scheme.go:30"
_TOO_DEEP = "exceeded max depth"
_FROM_TEMPLATES = "core.Pod"
_WORTH_KEEPING = 16 * 1024
"""Bytes of a spec whose shape is kept."""


def conform(
    call: Call,
    obj: JsonObject,
    *,
    whole: bool = True,
    body: bytes = b"",
    known: JsonObject | None = None,
) -> None:
    """Check an object's shape and take out what does not belong; complain as the client wishes.

    What is not a whole object, but what a manager wants of one, is given no defaults: they would
    look like its wishes. `body` is what was sent, if that was this object; `known` is what it was
    before, which is in order.
    """
    type_ = root_type(call.kind.group, call.kind.kind) if call.kind.custom is None else None
    if type_ is not None:
        conform_to(call, obj, type_, Report([], whole, known), body)
    else:
        repeated = repeated_fields(obj, body) if call.field_validation != "Ignore" else []
        unknown = conform_metadata(call, obj, whole=whole)
        unknown += _conform_custom(call, obj, whole=whole)
        complain(call, obj, repeated + [f'unknown field "{name}"' for name in unknown])


def kind_problem(obj: JsonObject, kind: Kind, catalog: Catalog) -> str:
    """What is wrong with the kind that an object says it is; what it does not say is not wrong."""
    named = obj.get("kind") or kind.kind
    api_version = obj.get("apiVersion") or kind.api_version
    if (named, api_version) == (kind.kind, kind.api_version):
        return ""
    group, _, version = api_version.rpartition("/")
    singles = (named, named.removesuffix("List"))
    known = any(catalog.of_object(api_version, each) for each in singles)
    if known and (named, group) == (kind.kind, kind.group):
        told = f"the API version in the data ({api_version}) does not match"
        return f"{told} the expected API version ({kind.api_version})"
    what = f'{named} in version "{version}" cannot be handled as a {kind.kind}'
    return f"{what}: {_no_conversion(named, api_version, kind, known=known)}"


def _no_conversion(named: str, api_version: str, kind: Kind, *, known: bool) -> str:
    if not known:
        return f'no kind "{named}" is registered for version "{api_version}" in scheme "{_SCHEME}"'
    version, inner = api_version.rpartition("/")[2], f"{package_of(kind.group)}.{kind.kind}"
    return f"converting ({version}.{named}) to ({inner}): unknown conversion"


def check_patched_kind(call: Call, obj: JsonObject, catalog: Catalog) -> None:
    """A patch may not make another kind of an object, nor one of no kind."""
    if call.strategic is None and not obj.get("apiVersion"):
        raise nameless(call)
    for name in ("apiVersion", "kind"):
        if not isinstance(obj.get(name), str | None):
            told = f"json: cannot unmarshal {unmarshal.described(obj[name])} into Go struct field"
            raise undecodable(call, obj, f"{told} .{name} of type string")
    problem = kind_problem(obj, call.kind, catalog) if call.strategic is None else ""
    if problem:
        raise undecodable(call, obj, problem.partition(f" as a {call.kind.kind}: ")[2] or problem)


def nameless(call: Call) -> ApiError:
    """An object that does not say its name."""
    return bad_request(
        f"the name of the object ({call.name} based on URL) was undeterminable: "
        "name must be provided"
    )


def _conform_custom(call: Call, obj: JsonObject, *, whole: bool) -> list[str]:
    """Drop what a custom resource's schema does not know, and add what it defaults."""
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


def custom_problems(call: Call, obj: JsonObject) -> list[Cause]:
    """What a custom resource's schema says is wrong with it."""
    custom = call.kind.custom
    if custom is None:
        return []
    found = [] if custom.schema is None else _schema_problems(call, obj, custom.schema)
    return found + (scale_problems(obj, custom.scale) if custom.scale is not None else [])


def _schema_problems(call: Call, obj: JsonObject, schema: JsonObject) -> list[Cause]:
    if call.subresource != "status":
        return problems(obj, schema)
    inner = (schema.get("properties") or {}).get("status")
    return problems_at("status", obj["status"], inner) if inner and "status" in obj else []


def conform_metadata(call: Call, obj: JsonObject, *, whole: bool = True) -> list[str]:
    """Check only the metadata: the rest has a schema of its own, or none."""
    meta = obj.get("metadata")
    if meta is None:
        obj["metadata"] = {}
        return []
    report = Report([], whole)
    _checked(call, meta, require_type("meta.ObjectMeta"), report)
    return [f"metadata.{name}" for name in report.unknown]


def conform_to(
    call: Call, obj: JsonObject, type_: ObjectType, report: Report, body: bytes = b""
) -> None:
    """Check an object against a type."""
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
    """A pod's spec, put into its shape, if it is one that has been seen before or is in order."""
    spec = pod.get("spec")
    if type(spec) is not dict:
        return None
    written = encode(spec)
    shaped = _shaped_spec(written) if len(written) <= _WORTH_KEEPING else None
    if shaped is None:
        return None
    pod["spec"] = decode(shaped)
    return {"spec": pod["spec"]}


@lru_cache(256)
def _shaped_spec(written: bytes) -> bytes | None:
    """A spec in the shape of its type; None if there is something to complain of.

    Pods of one template differ by name, and their spec is looked at once.
    """
    spec, report = decode(written), Report([])
    try:
        check_object(spec, require_type("core.PodSpec"), report)
    except (Mismatch, RecursionError):
        return None
    return None if report.unknown else encode(spec)


def may_repeat(obj: JsonValue, body: bytes) -> bool:
    """Whether a field may stand twice in what was sent: fewer were read than were there."""
    return bool(body) and body.count(b'":') != encode(obj).count(b'":')


def repeated_fields(obj: JsonValue, body: bytes) -> list[str]:
    """The fields that stand twice in what was sent, of which nothing more is known."""
    if not may_repeat(obj, body):
        return []
    return unmarshal.strict_problems(unmarshal.read_exactly(body), None)


def _checked(
    call: Call, obj: JsonObject, type_: ObjectType, report: Report, body: bytes = b""
) -> None:
    try:
        check_object(obj, type_, report, known=report.known)
    except Mismatch as found:
        if call.strategic is not None:
            told = unmarshal.restored_problem(obj, type_)
        else:
            told = unmarshal.problem(unmarshal.read_exactly(body) if body else obj, type_)
        raise undecodable(call, obj, told or str(found)) from found
    except RecursionError as problem:
        raise undecodable(call, obj, _TOO_DEEP) from problem


def undecodable(call: Call, obj: JsonObject, why: str) -> ApiError:
    """What was sent, or what a patch has made, is no object of the kind."""
    kind = call.kind
    if call.patching:
        return invalid("", "", "", [bad_value("patch", _patched(call, obj), why)])
    what = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
    return bad_request(f"{what}: {why}")


def _patched(call: Call, obj: JsonObject) -> str:
    if call.strategic is not None:
        return in_go(call.strategic)
    try:
        return encode(obj).decode()
    except RecursionError:
        return "{}"


def complain(call: Call, obj: JsonObject, complaints: list[str]) -> None:
    """Refuse fields that a strict client does not want to be dropped; warn others of them."""
    complaints = [*call.repeated, *complaints]
    if not complaints or call.field_validation == "Ignore":
        return
    if call.field_validation == "Strict":
        raise undecodable(call, obj, "strict decoding error: " + ", ".join(complaints))
    for problem in complaints:
        call.warn(problem)
