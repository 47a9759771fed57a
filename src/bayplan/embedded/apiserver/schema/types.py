"""The type table: read from the text files beside this module, when first needed.

A type is a name at the start of a line; its fields follow, indented: the protobuf number, the name,
the type, and flags. `[]T` is a list, `map:T` a map from strings. Flags: `inline` (its fields are
those of the parent in JSON), `merge` or `merge=KEY` (strategic merge), `replace` (an object that a
strategic merge replaces), `retain` (retainKeys), `keys=A,B` (a list of type map with these keys),
`set`, `atomic`, `always` (printed also when it is empty), `pointer` (its zero value differs from
its absence), `go=T` (the name of its type in Kubernetes' messages, where it differs). A field that
is neither `always` nor `pointer` is omitted when it is empty.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from bayplan.embedded.apiserver.jsontypes import JsonValue

SCALARS = frozenset(
    ("string", "int32", "int64", "bool", "double", "bytes", "Quantity", "Time", "MicroTime")
) | {"IntOrString", "Raw", "FieldsV1", "any"}

_PLAIN = frozenset(("string", "int32", "int64", "bool", "double", "bytes"))

UNIONS = {
    "JSONSchemaPropsOrBool": "apiextensions.JSONSchemaProps",
    "JSONSchemaPropsOrArray": "apiextensions.JSONSchemaProps",
    "JSONSchemaPropsOrStringArray": "apiextensions.JSONSchemaProps",
}
"""Types that are either an object of a type or a simpler value."""


@dataclass(frozen=True, slots=True)
class FieldType:
    """A field of a type."""

    number: int
    name: str
    base: str
    """A scalar's name, or the full name of a type."""
    is_list: bool = False
    is_map: bool = False
    inline: bool = False
    merge: bool = False
    merge_key: str = ""
    replace: bool = False
    retain_keys: bool = False
    list_keys: tuple[str, ...] = ()
    is_set: bool = False
    atomic: bool = False
    always: bool = False
    pointer: bool = False
    go: str = ""
    omits_empty: bool = field(init=False, default=False)
    """Whether an empty value is omitted."""
    is_object: bool = field(init=False, default=False)
    """Whether the base is another type of the table."""
    is_text: bool = field(init=False, default=False)
    """Whether it is a single string."""

    def __post_init__(self) -> None:
        put, several = object.__setattr__, self.is_list or self.is_map
        plain = several or self.base in _PLAIN
        put(self, "omits_empty", plain and not (self.always or self.pointer))
        put(self, "is_object", self.base not in SCALARS and self.base not in UNIONS)
        put(self, "is_text", self.base == "string" and not several)


@dataclass(frozen=True, slots=True)
class ObjectType:
    """A type with fields."""

    name: str
    declared: tuple[FieldType, ...] = ()
    fields: dict[str, FieldType] = field(default_factory=dict)
    """Fields by JSON name, including those of inlined types."""
    embedded: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The inlined types by which a field is reached."""


ZEROS: dict[str, JsonValue] = {
    "string": "",
    "bool": False,
    "Quantity": "0",
    **dict.fromkeys(("int32", "int64", "double", "IntOrString"), 0),
}
"""Zero values of scalars; others are null."""

TypeMeta = (
    FieldType(0, "kind", "string"),
    FieldType(0, "apiVersion", "string"),
)


def find_type(name: str) -> ObjectType | None:
    """Return the type of a full name, such as `core.PodSpec`, or None."""
    package, _, _ = name.partition(".")
    return _package(package).get(name)


@cache
def require_type(name: str) -> ObjectType:
    """Return the type of a full name."""
    found = find_type(name)
    if found is None:
        raise KeyError(name)
    return found


@cache
def zeros_of(name: str) -> tuple[tuple[str, JsonValue], ...]:
    """Return the fields that an object of a type always has, with their zero values."""
    fields = require_type(name).fields.values()
    return tuple((one.name, _zero(one)) for one in fields if one.always)


def _zero(one: FieldType) -> JsonValue:
    if one.is_list or one.is_map or one.pointer:
        return None
    return dict(zeros_of(one.base)) if one.is_object else ZEROS.get(one.base)


@cache
def _package(name: str) -> dict[str, ObjectType]:
    """Return the types of one file; empty if there is none."""
    file = resources.files(__package__).joinpath("tables", f"{name}.txt")
    if not name.isalnum() or not file.is_file():
        return {}
    declared: dict[str, list[FieldType]] = {}
    current = ""
    for line in file.read_text("utf-8").splitlines():
        if line.startswith(" "):
            declared[current].append(_field(line.split(), name))
        else:
            current = f"{name}.{line}"
            declared[current] = []
    found = {key: ObjectType(key, tuple(fields)) for key, fields in declared.items()}
    for type_ in found.values():
        _flatten(type_, found)
    return found


def _field(parts: list[str], package: str) -> FieldType:
    number, name, base, *flags = parts
    options = dict(flag.partition("=")[::2] for flag in flags)
    is_list, base = base.startswith("[]"), base.removeprefix("[]")
    is_map, base = base.startswith("map:"), base.removeprefix("map:")
    inner_list, base = base.startswith("[]"), base.removeprefix("[]")
    if base not in SCALARS and base not in UNIONS and "." not in base:
        base = f"{package}.{base}"
    return FieldType(
        int(number),
        name,
        "any" if inner_list else base,
        is_list,
        is_map,
        inline="inline" in options,
        merge="merge" in options,
        merge_key=options.get("merge", ""),
        replace="replace" in options,
        retain_keys="retain" in options,
        list_keys=tuple(options["keys"].split(",")) if "keys" in options else (),
        is_set="set" in options,
        atomic="atomic" in options,
        always="always" in options,
        pointer="pointer" in options,
        go=options.get("go", ""),
    )


def _flatten(type_: ObjectType, siblings: dict[str, ObjectType]) -> None:
    """Set the JSON fields of a type."""
    for declared in type_.declared:
        if not declared.inline:
            type_.fields[declared.name] = declared
            continue
        inner = siblings[declared.base]
        _flatten(inner, siblings)
        type_.fields.update(inner.fields)
        name = declared.base.rpartition(".")[2]
        for each in inner.fields:
            type_.embedded[each] = (name, *inner.embedded.get(each, ()))
    if "metadata" in type_.fields:
        type_.fields.update((meta.name, meta) for meta in TypeMeta)


_PACKAGES = {
    "": "core",
    "rbac.authorization.k8s.io": "rbac",
}


def package_of(group: str) -> str:
    """Return the package name of a group's types."""
    return _PACKAGES.get(group) or group.partition(".")[0]


@cache
def root_type(group: str, kind: str) -> ObjectType | None:
    """Return the type of a built-in kind; None for other kinds."""
    return find_type(f"{package_of(group)}.{kind}")
